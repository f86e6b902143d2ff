// What a number was measured on.
#pragma once

#include <cstdint>
#include <string>

namespace warpraid::bench {

struct Machine {
    std::string cpu;
    std::uint32_t cpus = 0;
    std::uint64_t memory_bytes = 0;
    std::string kernel;
    std::string compiler;
};
Machine describe_machine();

}  // namespace warpraid::bench
