// Proof that two drives are not one under two names, whatever lies between them and the hardware.
#pragma once

#include "base/random.h"
#include "base/result.h"
#include "io/drive.h"

namespace warpraid::meta {

/// Writes a mark to places of `copy` that nothing needs and looks whether `keeper`, a drive of ours
/// as well, shows it there; then puts back what was there. A crash on the way leaves the mark and
/// nothing else. kWrongState when they are one; any error means that nothing is proved.
Status prove_apart(io::BlockingDrive& copy, io::BlockingDrive& keeper, Random& random);

}  // namespace warpraid::meta
