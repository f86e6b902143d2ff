// What a simulated drive holds: its lasting content and what lies in its volatile cache. Blocks are
// the unit: each of those that were written since the last flush may be lost or kept by a power
// cut, whatever happens to the others. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "base/units.h"

namespace warpraid::sim {

/// Bytes of which only those that were written take memory; the rest is zero.
class SparseBytes {
  public:
    explicit SparseBytes(std::uint64_t size) : pages_(divide_up(size, kPageBytes)) {}
    void read(std::uint64_t offset, std::span<std::byte> to) const;
    void write(std::uint64_t offset, std::span<const std::byte> from);
    void zero(std::uint64_t offset, std::uint64_t length);
    std::uint32_t digest() const;

  private:
    static constexpr std::uint64_t kPageBytes = 16 * kKiB;
    using Page = std::array<std::byte, kPageBytes>;
    std::vector<std::unique_ptr<Page>> pages_;
};

class Medium {
  public:
    Medium(std::uint64_t size_bytes, std::uint32_t block_bytes);

    std::uint64_t size_bytes() const { return size_bytes_; }
    std::uint32_t block_bytes() const { return block_bytes_; }

    void read(std::uint64_t offset, std::span<std::byte> to) const { current_.read(offset, to); }
    /// Into the cache.
    void write(std::uint64_t offset, std::span<const std::byte> from);
    void zero(std::uint64_t offset, std::uint64_t length);
    /// What is in the cache of the range is lasting from now on.
    void settle(std::uint64_t offset, std::uint64_t length);
    /// Blocks in the cache now, for settle_blocks() when a flush that starts now has ended.
    std::vector<std::uint64_t> cached_blocks() const;
    void settle_blocks(std::span<const std::uint64_t> blocks);
    /// The drive decides for each block in its cache whether it had written it already.
    void cut_power(SeededRandom& random);
    /// Of all that it holds; what was never written is like zeroes.
    std::uint32_t digest() const { return current_.digest(); }

  private:
    void remember(std::uint64_t offset, std::uint64_t length);

    std::uint64_t size_bytes_;
    std::uint32_t block_bytes_;
    SparseBytes current_;
    /// What lasts of the blocks in the cache, by number.
    std::unordered_map<std::uint64_t, std::vector<std::byte>> lasting_;
};

}  // namespace warpraid::sim
