#include "sim/medium.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "base/crc32c.h"

namespace warpraid::sim {

void SparseBytes::read(std::uint64_t offset, std::span<std::byte> to) const {
    while (!to.empty()) {
        const std::uint64_t at = offset % kPageBytes;
        const std::size_t size = std::min<std::uint64_t>(to.size(), kPageBytes - at);
        const Page* page = pages_[offset / kPageBytes].get();
        if (page != nullptr) {
            std::memcpy(to.data(), page->data() + at, size);
        } else {
            std::memset(to.data(), 0, size);
        }
        offset += size;
        to = to.subspan(size);
    }
}

void SparseBytes::write(std::uint64_t offset, std::span<const std::byte> from) {
    while (!from.empty()) {
        const std::uint64_t at = offset % kPageBytes;
        const std::size_t size = std::min<std::uint64_t>(from.size(), kPageBytes - at);
        std::unique_ptr<Page>& page = pages_[offset / kPageBytes];
        if (page == nullptr) page = std::make_unique<Page>();
        std::memcpy(page->data() + at, from.data(), size);
        offset += size;
        from = from.subspan(size);
    }
}

void SparseBytes::zero(std::uint64_t offset, std::uint64_t length) {
    while (length > 0) {
        const std::uint64_t at = offset % kPageBytes;
        const std::uint64_t size = std::min(length, kPageBytes - at);
        std::unique_ptr<Page>& page = pages_[offset / kPageBytes];
        if (size == kPageBytes) {
            page.reset();
        } else if (page != nullptr) {
            std::memset(page->data() + at, 0, size);
        }
        offset += size;
        length -= size;
    }
}

std::uint32_t SparseBytes::digest() const {
    static constexpr Page kZeroes{};
    std::uint32_t sum = 0;
    for (std::size_t number = 0; number < pages_.size(); ++number) {
        const Page* page = pages_[number].get();
        if (page == nullptr || *page == kZeroes) continue;
        sum = crc32c(std::as_bytes(std::span(&number, 1)), sum);
        sum = crc32c(*page, sum);
    }
    return sum;
}

Medium::Medium(std::uint64_t size_bytes, std::uint32_t block_bytes)
    : size_bytes_(size_bytes), block_bytes_(block_bytes), current_(size_bytes) {}

void Medium::remember(std::uint64_t offset, std::uint64_t length) {
    WARPRAID_ASSERT(offset % block_bytes_ == 0 && length % block_bytes_ == 0);
    WARPRAID_ASSERT(offset <= size_bytes_ && length <= size_bytes_ - offset);
    for (std::uint64_t at = offset; at < offset + length; at += block_bytes_) {
        const auto [place, is_new] = lasting_.try_emplace(at / block_bytes_);
        if (!is_new) continue;
        place->second.resize(block_bytes_);
        current_.read(at, place->second);
    }
}

void Medium::write(std::uint64_t offset, std::span<const std::byte> from) {
    remember(offset, from.size());
    current_.write(offset, from);
}

void Medium::zero(std::uint64_t offset, std::uint64_t length) {
    remember(offset, length);
    current_.zero(offset, length);
}

void Medium::settle(std::uint64_t offset, std::uint64_t length) {
    if (lasting_.empty()) return;
    for (std::uint64_t at = offset; at < offset + length; at += block_bytes_) {
        lasting_.erase(at / block_bytes_);
    }
}

std::vector<std::uint64_t> Medium::cached_blocks() const {
    std::vector<std::uint64_t> blocks;
    blocks.reserve(lasting_.size());
    for (const auto& entry : lasting_) blocks.push_back(entry.first);
    // The order in a hash table is nobody's: what comes of it must depend on the seed alone.
    std::sort(blocks.begin(), blocks.end());
    return blocks;
}

void Medium::settle_blocks(std::span<const std::uint64_t> blocks) {
    for (const std::uint64_t block : blocks) lasting_.erase(block);
}

void Medium::cut_power(SeededRandom& random) {
    for (const std::uint64_t block : cached_blocks()) {
        if (random.below(2) == 0) current_.write(block * block_bytes_, lasting_.at(block));
    }
    lasting_.clear();
}

}  // namespace warpraid::sim
