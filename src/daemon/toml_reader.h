// The part of TOML that the configuration needs: `key = value` lines, where a value is a string on
// one line, a whole number, true or false, or a list of those, which may span lines. Every document
// it accepts means the same to any TOML parser. Our own because toml++ 3.3 runs into undefined
// behaviour on malformed input (fuzz/daemon_config.cpp found it at once).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace warpraid::daemon {

struct TomlEntry {
    std::string key;
    /// Strings as they are meant, numbers in decimal, "true" or "false". One, unless it is a list.
    std::vector<std::string> values;
    std::size_t line = 0;  // of the key, from 1
};

/// kBadConfig, with the line and, where one was read, the key: anything else, a key given twice.
Result<std::vector<TomlEntry>> read_toml(std::string_view text);

}  // namespace warpraid::daemon
