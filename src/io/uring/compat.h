// Constants of kernels newer than the distribution's headers. Whether the running kernel knows them
// is asked at run time.
#pragma once

#include <sys/ioctl.h>

#include <cstdint>

namespace warpraid::io::uring {

/// Ring entries for vectored reads and writes with registered buffers (Linux 6.15).
inline constexpr unsigned kOpReadvFixed = 60;
inline constexpr unsigned kOpWritevFixed = 61;

/// The id that a file system carries on disk (Linux 6.9).
struct FilesystemUuid {
    std::uint8_t length;
    std::uint8_t bytes[16];
};
inline constexpr unsigned long kIoctlFilesystemUuid = _IOR(0x15, 0, FilesystemUuid);

}  // namespace warpraid::io::uring
