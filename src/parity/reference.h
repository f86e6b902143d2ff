// The plain coder: written to be obviously right, one byte at a time. Every other coder is compared
// with it byte for byte. Finishes inside submit().
#pragma once

#include <memory>

#include "parity/coder.h"

namespace warpraid::parity {

std::unique_ptr<Coder> make_reference_coder();

}  // namespace warpraid::parity
