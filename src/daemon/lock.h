// One daemon per state directory.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace warpraid::daemon {

/// Makes the directory and what leads to it, with this mode whatever the umask; what exists stays
/// as it is. kSystem.
Status make_directory(const std::string& path, unsigned mode);

/// Held as long as the descriptor is open, and gone with the process however it ends.
/// kDaemonRunning names the pid of the holder.
Result<UniqueFd> lock_directory(const std::string& directory);

}  // namespace warpraid::daemon
