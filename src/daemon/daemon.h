// The composition root: builds everything in order, serves until a signal, takes everything down in
// the opposite order.
#pragma once

#include <string>

#include "base/result.h"
#include "daemon/options.h"

namespace warpraid::daemon {

struct Surroundings {
    std::string notify_socket;  // NOTIFY_SOCKET of the environment
    std::string host_name;
};

/// Returns after an orderly stop. Prints "warpraidd: ready" to standard output once groups are
/// assembled and every socket is served.
Status run(const Options& options, const Surroundings& surroundings);

}  // namespace warpraid::daemon
