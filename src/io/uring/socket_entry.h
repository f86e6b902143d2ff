// How a socket operation becomes a ring entry, and what its result means.
#pragma once

#include <liburing.h>

#include <cstdint>

#include "io/reactor.h"

namespace warpraid::io::uring {

void fill_socket_entry(SocketOperation& operation, io_uring_sqe& entry);

struct SocketOutcome {
    bool is_finished = false;  // otherwise the operation must be issued again
    std::int64_t result = 0;
};

/// Takes over what the kernel did; a short send is left to be continued.
SocketOutcome take_socket_result(SocketOperation& operation, int result);

}  // namespace warpraid::io::uring
