// Text that others have stored, for a terminal or a log.
#pragma once

#include <string>
#include <string_view>

namespace warpraid {

/// Names on drives and serial numbers may hold line ends and escapes that terminals obey: control
/// characters, those of Unicode too, become '?'.
std::string printable(std::string_view text);

}  // namespace warpraid
