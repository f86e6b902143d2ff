#include "api/client.h"

#include <httplib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/unique_fd.h"

namespace warpraid::api {

namespace {

/// httplib hides why it could not connect; the operator wants to know.
Status try_connect(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof(address.sun_path)) {
        return Error{ErrorCode::kInvalidArgument, "the socket's path must have 1 to " +
                                                      std::to_string(sizeof(address.sun_path) - 1) +
                                                      " bytes: " + path};
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!probe) return system_error(ErrorCode::kSystem, "cannot make a socket", errno);
    if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
        return success();
    }
    if (errno == EACCES || errno == EPERM) {
        return system_error(
            ErrorCode::kPermissionDenied,
            "cannot use " + path + "; be root, or a member of the daemon's --socket-group", errno);
    }
    return system_error(
        ErrorCode::kDaemonUnreachable,
        "nobody answers on " + path + "; start warpraidd there, or name another --socket", errno);
}

}  // namespace

Result<Reply> Client::request(const std::string& method, const std::string& target,
                              const std::string& body) {
    WARPRAID_TRY(try_connect(options_.socket_path));
    httplib::ClientImpl http(options_.socket_path, 80);
    http.set_address_family(AF_UNIX);
    http.set_url_encode(false);
    http.set_keep_alive(false);
    const std::chrono::nanoseconds timeout(options_.answer_timeout_ns);
    http.set_read_timeout(std::chrono::duration_cast<std::chrono::microseconds>(timeout));
    httplib::Request request;
    request.method = method;
    request.path = target;
    request.headers = {{"Host", "localhost"}};
    if (!body.empty()) {
        request.body = body;
        request.headers.emplace("Content-Type", "application/json");
    }
    const httplib::Result result = http.send(request);
    if (result) return Reply{result->status, result->body};
    if (result.error() == httplib::Error::Read) {
        return Error{ErrorCode::kTimeout,
                     "no answer came on " + options_.socket_path +
                         ": the daemon stopped, or needs longer than " +
                         std::to_string(options_.answer_timeout_ns / 1'000'000'000) +
                         " s; look at 'warpraid status' before trying again"};
    }
    if (result.error() == httplib::Error::Connection) {
        return Error{ErrorCode::kDaemonUnreachable,
                     options_.socket_path + " does not take another connection now: try again"};
    }
    return Error{ErrorCode::kProtocol,
                 "what answers on " + options_.socket_path +
                     " does not speak HTTP and is not warpraidd: name another --socket"};
}

}  // namespace warpraid::api
