// Whether two drives are one piece of storage, as far as the kernel tells: the same device or file,
// a loop device and what is behind it, or one that is stacked on the other.
#pragma once

#include <sys/stat.h>

namespace warpraid::io::uring {

/// `first` and `second` are those of opened block devices or plain files. Two partitions of a
/// device, or two volumes over one, are not the same storage; a volume and its device are.
bool share_storage(const struct stat& first, const struct stat& second);

}  // namespace warpraid::io::uring
