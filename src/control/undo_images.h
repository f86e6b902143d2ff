// What a forced create overwrites, on the drives themselves: read before, and written back.
//
// A drive may be written only while it carries the mark, the first block of the protective MD
// superblock, with the identity that the create gave it. The create writes the mark first, and what
// gives the drive back writes what lay there last; one write changes it as a whole. So a drive with
// the mark is the one that the image is of, whatever name it goes by, and one without the mark was
// not overwritten yet, has got all of it back, or is somebody else's now.
//
// Blocking; one thread at a time per drive.
#pragma once

#include "base/result.h"
#include "base/uuid.h"
#include "control/undo_file.h"
#include "io/drive.h"

namespace warpraid::control {

struct TakenImage {
    UndoDrive drive;
    UndoImage image;
};

/// Reads what is to be kept of the drive. The drive's error, naming the drive. `member` is the
/// identity that it gets in the group.
Result<TakenImage> take_image(io::BlockingDrive& drive, const Uuid& member);

/// Whether `before` may be written to the drive: it carries the mark, the group is held as far as
/// its superblocks say, and the ends of the drive hold nothing but what they held before and what a
/// create, or a restore that was cut short, leaves there. kInUse when they hold anything else; the
/// drive's error when it cannot be read.
Status check_restorable(io::BlockingDrive& drive, const Uuid& group, const UndoDrive& before,
                        const UndoImage& image);

/// Writes back, flushes, and reads back, the mark last. Interrupted, it can be run again. The
/// drive's error, or kIo when it does not hold what was written.
Status give_back(io::BlockingDrive& drive, const UndoImage& image);

/// Whether the drive, which has the size of the one before, holds what that held. The drive's
/// error.
Result<bool> holds(io::BlockingDrive& drive, const UndoImage& image);

}  // namespace warpraid::control
