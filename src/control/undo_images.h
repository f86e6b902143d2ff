// What a forced create overwrites, on the drives themselves: read before, and written back.
// Blocking; one thread at a time per drive.
#pragma once

#include <optional>

#include "base/result.h"
#include "base/uuid.h"
#include "control/undo_file.h"
#include "format/superblock.h"
#include "io/drive.h"

namespace warpraid::control {

/// Reads what the record has to keep of the drive. The drive's error, naming the drive.
/// `member` is the identity that it gets in the group.
Result<UndoDrive> take_image(io::BlockingDrive& drive, const Uuid& member);

/// The newest superblock of the group that the drive still carries: nobody else took it since.
std::optional<format::Superblock> superblock_of(io::BlockingDrive& drive, const Uuid& group);

/// Whether `before` may be written to the drive: it is of the group, which is held, or its ends
/// hold nothing but what they held before and what a create, or a restore that was cut short, left
/// there. kInUse when the drive has been used otherwise since, or the group has been; the drive's
/// error when it cannot be read.
Status check_restorable(io::BlockingDrive& drive, const UndoDrive& before, const Uuid& group);

/// Writes back, flushes, and reads back. Interrupted, it can be run again: check_restorable() knows
/// every state between. The drive's error, or kIo when it does not hold what was written.
Status give_back(io::BlockingDrive& drive, const UndoDrive& before);

}  // namespace warpraid::control
