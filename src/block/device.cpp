#include "block/device.h"

#include <cerrno>

namespace warpraid::block {

int check_request(const Request& request, const Limits& limits) {
    if (request.operation == Operation::kFlush) return 0;
    const bool writes = request.operation != Operation::kRead;
    const bool has_data =
        request.operation == Operation::kRead || request.operation == Operation::kWrite;
    if (writes && limits.read_only) return EROFS;
    if (request.length_bytes == 0) return EINVAL;
    if (request.offset % limits.block_bytes != 0) return EINVAL;
    if (request.length_bytes % limits.block_bytes != 0) return EINVAL;
    if (has_data && request.length_bytes > limits.request_bytes_max) return EINVAL;
    if (request.offset > limits.size_bytes ||
        request.length_bytes > limits.size_bytes - request.offset) {
        return writes ? ENOSPC : EINVAL;
    }
    return 0;
}

}  // namespace warpraid::block
