// Assertions that ship. WARPRAID_ASSERT stops the process at the cause of a broken invariant; it is
// never used for an expected error (that is a Result). WARPRAID_VERIFY is for costly checks and is
// compiled in by the dev, asan and relassert presets only.
#pragma once

namespace warpraid {

/// Prints the failed condition with its place and aborts. Any thread.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace warpraid

#define WARPRAID_ASSERT(condition)                       \
    (static_cast<bool>(condition) ? static_cast<void>(0) \
                                  : ::warpraid::assertion_failed(#condition, __FILE__, __LINE__))

#ifdef WARPRAID_VERIFY_ENABLED
#define WARPRAID_VERIFY(condition) WARPRAID_ASSERT(condition)
#else
#define WARPRAID_VERIFY(condition) static_cast<void>(0)
#endif
