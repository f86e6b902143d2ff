// From options to the API's requests.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/options.h"

namespace warpraid::cli {

struct Request {
    std::string method;
    std::string target;
    std::string body;  // empty: none
    /// What to ask before it is sent; empty: nothing is destroyed.
    std::string question;
    /// One line for standard error; usually empty.
    std::string warning;
};

/// kBadChunk for a chunk of 0, which the API takes for "the usual"; kInvalidArgument for text that
/// is not UTF-8.
Result<Request> make_request(const Options& options);

}  // namespace warpraid::cli
