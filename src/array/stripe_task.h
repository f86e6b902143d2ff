// A piece of background work over whole stripes, executed by the engine under their lock. The
// pieces of one recovery are submitted in ascending order; the engine lets them run side by side
// and finishes them in order, so that "valid up to here" is always true.
#pragma once

#include <cstdint>

#include "base/intrusive_list.h"
#include "base/units.h"

namespace warpraid::array {

struct StripeTask : FifoLink<StripeTask> {
    enum class Kind : std::uint8_t {
        kRebuild,  // compute the chunks of rebuilding members and write them there
        kResync,   // make members agree: parity from data, copies from the first copy
        kVerify,   // count stripes whose members disagree; writes nothing
    };
    Kind kind = Kind::kVerify;
    Stripe first;
    std::uint32_t count = 0;  // stripes; at most Engine's limit, see stripes_per_task()

    void (*complete)(StripeTask&) = nullptr;
    void* owner = nullptr;
    int error = 0;                 // EIO: some stripes could not be read from what is left
    std::uint64_t mismatches = 0;  // kVerify: stripes that disagree
};

/// Stripes that one task may cover for this depth: about 1 MiB per member, at least one stripe.
std::uint32_t stripes_per_task(std::uint64_t stripe_depth_bytes);

}  // namespace warpraid::array
