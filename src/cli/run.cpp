#include "cli/run.h"

#include "base/printable.h"
#include "cli/fields.h"
#include "cli/view.h"

namespace warpraid::cli {

namespace {

constexpr int kFailed = 1;
constexpr int kHealthUnknown = 2;
constexpr int kIncomplete = 3;
constexpr int kRefused = 4;

int failure_status(const Options& options) {
    return options.command == Command::kHealth ? kHealthUnknown : kFailed;
}

int status_of(const Options& options, const Json& answer) {
    if (options.command == Command::kHealth) {
        return static_cast<int>(number(at(answer, "health"), "level"));
    }
    if (options.command != Command::kAssemble) return 0;
    int status = 0;
    for (const Json& outcome : at(answer, "outcomes")) {
        const std::string word = text(outcome, "outcome");
        if (word == "started" || word == "already-running") continue;
        status = std::max(status, word == "incomplete" ? kIncomplete : kRefused);
    }
    return status;
}

/// A refusal as the daemon gave it.
void report_refusal(const Options& options, const Outside& outside, const std::string& body,
                    const Json& answer) {
    if (options.json) return outside.output(body);
    const Json& error = at(answer, "error");
    outside.problem(
        "error: " + printable(text(error, "message") + " [" + text(error, "code") + "]") + "\n");
}

int run_once(const Options& options, const Outside& outside, const Request& request) {
    const Result<api::Reply> reply = outside.send(request);
    if (!reply.ok()) {
        report(options, outside, reply.error());
        return failure_status(options);
    }
    const Json answer = Json::parse(reply->body, nullptr, false);
    if (!answer.is_object()) {
        report(options, outside,
               Error{ErrorCode::kProtocol, "what answers on " + options.socket_path +
                                               " does not send JSON and is not warpraidd: name "
                                               "another --socket"});
        return failure_status(options);
    }
    if (!reply->ok()) {
        report_refusal(options, outside, reply->body, answer);
        return failure_status(options);
    }
    outside.output(options.json ? reply->body : view(options, answer));
    return status_of(options, answer);
}

}  // namespace

void report(const Options& options, const Outside& outside, const Error& error) {
    const std::string code(to_text(error.code));
    if (!options.json) {
        outside.problem("error: " + printable(error.message + " [" + code + "]") + "\n");
        return;
    }
    const Json body{{"error", {{"code", code}, {"message", error.message}}}};
    outside.output(body.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

int run(const Options& options, const Outside& outside) {
    const Result<Request> request = make_request(options);
    if (!request.ok()) {
        report(options, outside, request.error());
        return failure_status(options);
    }
    if (!request->warning.empty()) outside.problem("warning: " + request->warning + "\n");
    if (!request->question.empty() && !options.yes) {
        const bool is_confirmed = outside.ask && outside.ask(request->question);
        if (!is_confirmed) {
            report(options, outside,
                   Error{ErrorCode::kNotConfirmed,
                         request->question + " Nothing was done; confirm it with --yes"});
            return kFailed;
        }
    }
    int status = run_once(options, outside, request.value());
    while (options.watch && status == 0 && outside.again()) {
        status = run_once(options, outside, request.value());
    }
    return status;
}

}  // namespace warpraid::cli
