// What the connections of one server share: pools, exports, counters, and the two queues that the
// server's turn works off. One thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/intrusive_list.h"
#include "export/nbd/exports.h"
#include "export/nbd/frame.h"
#include "export/nbd/server.h"
#include "io/arena.h"
#include "io/reactor.h"

namespace warpraid::nbd {

/// A connection's place in the queue for a frame and a buffer.
struct AdmissionTicket : FifoLink<AdmissionTicket> {
    Connection* connection = nullptr;
    std::uint64_t since_ns = 0;
};
/// A connection's place among those with replies to send at the end of this turn.
struct SendTicket : FifoLink<SendTicket> {
    Connection* connection = nullptr;
};
/// A connection's place among those that let requests gather before they receive again.
struct GatherTicket : FifoLink<GatherTicket> {
    Connection* connection = nullptr;
    std::uint64_t until_ns = 0;
};

inline constexpr std::size_t kFramesMax = 4096;
/// One connection holds at most this part of what it leaves free, unless a single request needs
/// more: a quarter of an arena that it has for itself, and less the more the others hold. So
/// clients that do not read their replies leave room, even when they are several.
inline constexpr std::size_t kFreePartsPerConnection = 3;
/// What a frame counts as when the one that holds most is looked for.
inline constexpr std::size_t kFrameWorthBytes = 4096;
/// A connection that is being ended is cut off after so many times its patience even if it makes
/// progress: an orderly stop waits for it.
inline constexpr std::uint64_t kDrainPatiencesMax = 4;

struct Core {
    Core(const ServerOptions& server_options, io::Reactor& server_reactor,
         io::BufferArena& server_arena)
        : options(server_options),
          reactor(server_reactor),
          arena(server_arena),
          exports(std::bit_floor(std::min<std::uint64_t>(server_arena.memory().size(),
                                                         io::BufferArena::kBlockBytesMax))),
          frames(std::min<std::size_t>(kFramesMax, std::size_t{server_options.connections_max} *
                                                       server_options.requests_in_flight)) {}

    const ServerOptions options;
    io::Reactor& reactor;
    io::BufferArena& arena;
    ServerCounters counters;
    ExportTable exports;
    FramePool frames;
    /// First come, first served, whatever is asked for: a small request does not overtake a large
    /// one, so the large one gets its turn.
    IntrusiveFifo<AdmissionTicket> admissions;
    IntrusiveFifo<SendTicket> senders;
    IntrusiveFifo<GatherTicket> gathering;  // in the order of their time
    /// Connections that have chosen an export; they are what connections_max limits.
    std::uint32_t established = 0;
    /// Some connection has finished and can be destroyed.
    bool has_finished = false;
};

}  // namespace warpraid::nbd
