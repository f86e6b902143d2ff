// The configuration file: TOML with one key per setting, as far as daemon/toml_reader.h reads it.
// Unknown keys are errors.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "daemon/options.h"

namespace warpraid::daemon {

/// Sets what `text` says; the rest of `options` stays. kBadConfig names `name` with the line, or
/// the key.
Status apply_config(Options& options, std::string_view text, const std::string& name);
/// The same for a file of at most 1 MiB. kBadConfig also when it cannot be read.
Status apply_config_file(Options& options, const std::string& path);

}  // namespace warpraid::daemon
