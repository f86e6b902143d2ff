// One group served over NBD, by the product's server and engine on one thread, for measuring both
// together with a client of another process.
#pragma once

#include <string>

#include "base/result.h"
#include "engine/rig.h"

namespace warpraid::bench {

/// Serves the rig's engine as the export "bench" on a Unix socket until SIGTERM or SIGINT. The rig
/// must have been made with sockets.
Status serve(Rig& rig, const std::string& socket_path);

}  // namespace warpraid::bench
