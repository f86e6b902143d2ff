// The CPU coder over Intel ISA-L's kernels; ISA-L picks the instruction set. Finishes inside
// submit(). Scratch for reconstruction is inside the object: no allocation per job.
#pragma once

#include <memory>

#include "parity/coder.h"

namespace warpraid::parity {

std::unique_ptr<Coder> make_isal_coder();

}  // namespace warpraid::parity
