// Text as a piece of a request's address, for servers and clients alike.
#pragma once

#include <string>
#include <string_view>

namespace warpraid::api {

/// Everything but letters, digits, '-', '_', '.' and '~' becomes %XX.
std::string percent_encode(std::string_view text);

}  // namespace warpraid::api
