// The routes of /api/v1 as one function, without sockets: a request in, an answer out. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "control/service.h"

namespace warpraid::api {

struct Request {
    std::string_view method;  // "GET", "POST", "PATCH", "DELETE"
    std::string_view target;  // as it came, percent-encoded, with its query
    std::string_view body;
};

struct Answer {
    int http_status = 200;
    std::string body;  // JSON
};

Answer answer_of(const Error& error);

/// An unknown address or method is kNotFound; what the service refuses keeps its code.
Answer handle(control::Service& service, const Request& request);

}  // namespace warpraid::api
