// A plain HTTP client for the API's Unix socket, for command line tools: no JSON, no service. One
// thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace warpraid::api {

struct ClientOptions {
    std::string socket_path;
    std::uint64_t answer_timeout_ns = 300'000'000'000;
};

struct Reply {
    int http_status = 0;
    std::string body;
    bool ok() const { return http_status >= 200 && http_status < 300; }
};

class Client {
  public:
    explicit Client(const ClientOptions& options) : options_(options) {}

    /// `target` is percent-encoded and starts with "/api/v1". Any HTTP status is a Reply.
    /// kDaemonUnreachable: nobody answers on the socket; kPermissionDenied: its mode keeps this
    /// user out; kTimeout: no answer in time (the command may still be carried out); kProtocol: the
    /// answer is not HTTP.
    Result<Reply> request(const std::string& method, const std::string& target,
                          const std::string& body = {});

  private:
    ClientOptions options_;
};

}  // namespace warpraid::api
