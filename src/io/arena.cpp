#include "io/arena.h"

#include <sys/mman.h>

#include <bit>
#include <cerrno>
#include <limits>
#include <string>

#include "base/assert.h"
#include "base/units.h"

namespace warpraid::io {

static_assert(BufferArena::kBlockBytesMin << 13 == BufferArena::kBlockBytesMax);

Buffer& Buffer::operator=(Buffer&& other) noexcept {
    if (this != &other) {
        release();
        arena_ = std::exchange(other.arena_, nullptr);
        data_ = other.data_;
        size_ = other.size_;
    }
    return *this;
}

void Buffer::release() noexcept {
    if (arena_ == nullptr) return;
    std::exchange(arena_, nullptr)->release(data_, size_);
    data_ = nullptr;
    size_ = 0;
}

Result<std::unique_ptr<BufferArena>> BufferArena::make(std::size_t bytes) {
    constexpr std::size_t kBytesMax = std::numeric_limits<std::size_t>::max() / 2;
    if (bytes == 0 || bytes > kBytesMax) {
        return Error{ErrorCode::kBadSize, "the buffer arena's size is out of range: " +
                                              std::to_string(bytes) + " bytes"};
    }
    const std::size_t size = round_up(bytes, kBlockBytesMin);
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return system_error(ErrorCode::kOutOfMemory,
                            "cannot map a buffer arena of " + std::to_string(size) + " bytes",
                            errno);
    }
    std::unique_ptr<BufferArena> arena(new BufferArena);
    arena->memory_ = {static_cast<std::byte*>(memory), size};
    arena->free_bytes_ = size;
    const std::size_t pages = size / kBlockBytesMin;
    for (unsigned order = 0; order < kOrders; ++order) {
        arena->free_[order] = BitTree(divide_up(pages, std::size_t{1} << order));
    }
    // Cut the whole into the largest aligned blocks; the tail of an odd size becomes smaller ones.
    for (std::size_t page = 0; page < pages;) {
        unsigned order = kOrders - 1;
        while (page % (std::size_t{1} << order) != 0 || page + (std::size_t{1} << order) > pages) {
            --order;
        }
        arena->free_[order].insert(page >> order);
        page += std::size_t{1} << order;
    }
    return arena;
}

BufferArena::~BufferArena() {
    // A lease that outlives its arena would write into unmapped memory.
    WARPRAID_ASSERT(free_bytes_ == memory_.size());
    if (!memory_.empty()) munmap(memory_.data(), memory_.size());
}

Buffer BufferArena::try_acquire(std::size_t bytes) {
    if (bytes == 0 || bytes > kBlockBytesMax) return {};
    const std::size_t pages = divide_up(bytes, kBlockBytesMin);
    const unsigned wanted = static_cast<unsigned>(std::bit_width(pages - 1));
    unsigned order = wanted;
    std::uint64_t block = BitTree::kNone;
    for (; order < kOrders; ++order) {
        block = free_[order].lowest();
        if (block != BitTree::kNone) break;
    }
    if (block == BitTree::kNone) return {};
    free_[order].erase(block);
    while (order > wanted) {
        --order;
        block *= 2;
        free_[order].insert(block + 1);
    }
    const std::size_t size = kBlockBytesMin << wanted;
    free_bytes_ -= size;
    return Buffer(this, memory_.data() + block * size, size);
}

void BufferArena::release(std::byte* data, std::size_t size) noexcept {
    WARPRAID_ASSERT(data >= memory_.data() && data + size <= memory_.data() + memory_.size());
    unsigned order = static_cast<unsigned>(std::countr_zero(size / kBlockBytesMin));
    std::uint64_t block = static_cast<std::uint64_t>(data - memory_.data()) / size;
    free_bytes_ += size;
    // A buddy beyond the end of the arena is never in the set, so odd sizes need no special case.
    while (order + 1 < kOrders && free_[order].contains(block ^ 1)) {
        free_[order].erase(block ^ 1);
        block /= 2;
        ++order;
    }
    free_[order].insert(block);
}

}  // namespace warpraid::io
