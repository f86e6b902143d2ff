#include "base/random.h"

#include <sys/random.h>

#include <bit>

#include "base/assert.h"

namespace warpraid {

SeededRandom::SeededRandom(std::uint64_t seed) {
    for (std::uint64_t& word : state_) {  // splitmix64, as the generator's authors advise
        seed += 0x9e3779b97f4a7c15ULL;
        std::uint64_t mixed = seed;
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
        word = mixed ^ (mixed >> 31);
    }
}

std::uint64_t SeededRandom::next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
}

std::uint64_t SystemRandom::next() {
    std::uint64_t value = 0;
    WARPRAID_ASSERT(::getrandom(&value, sizeof value, 0) == sizeof value);
    return value;
}

}  // namespace warpraid
