#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace warpraid {

void assertion_failed(const char* condition, const char* file, int line) noexcept {
    std::fprintf(stderr, "warpraid: assertion failed: %s (%s:%d)\n", condition, file, line);
    std::fflush(stderr);
    std::abort();
}

}  // namespace warpraid
