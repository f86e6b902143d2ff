#include "block/slice.h"

#include "base/assert.h"

namespace warpraid::block {

Slice::Slice(Device& base, std::uint64_t start, std::uint64_t size_bytes)
    : base_(base), start_(start), limits_(base.limits()) {
    WARPRAID_ASSERT(start <= limits_.size_bytes && size_bytes <= limits_.size_bytes - start);
    limits_.size_bytes = size_bytes;
}

void Slice::submit(Request& request) {
    const int error = check_request(request, limits_);
    if (error != 0) {
        base_.reject(request, error);
        return;
    }
    request.offset += start_;
    base_.submit(request);
}

}  // namespace warpraid::block
