// A shard's buffer memory: one mapping, cut by a buddy scheme into power-of-two blocks of 4 KiB to
// 32 MiB, aligned to their size up to 4 KiB. Fixed at creation; no heap afterwards. try_acquire may
// say no: the caller waits. One thread. The memory can be registered with io_uring and, by the
// composition root, pinned for CUDA.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/result.h"
#include "io/bit_tree.h"

namespace warpraid::io {

class BufferArena;

/// Move-only lease of a block; gives it back when destroyed.
class Buffer {
  public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept
        : arena_(std::exchange(other.arena_, nullptr)), data_(other.data_), size_(other.size_) {}
    Buffer& operator=(Buffer&& other) noexcept;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { release(); }

    std::byte* data() const { return data_; }
    /// At least what was asked for.
    std::size_t size_bytes() const { return size_; }
    explicit operator bool() const { return arena_ != nullptr; }
    void release() noexcept;

  private:
    friend class BufferArena;
    Buffer(BufferArena* arena, std::byte* data, std::size_t size)
        : arena_(arena), data_(data), size_(size) {}

    BufferArena* arena_ = nullptr;
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

class BufferArena {
  public:
    static constexpr std::size_t kBlockBytesMin = 4096;
    static constexpr std::size_t kBlockBytesMax = 32 * 1024 * 1024;

    /// Maps `bytes` (rounded up to kBlockBytesMin); pages are touched only when used. kBadSize,
    /// kOutOfMemory.
    static Result<std::unique_ptr<BufferArena>> make(std::size_t bytes);
    ~BufferArena();
    BufferArena(const BufferArena&) = delete;
    BufferArena& operator=(const BufferArena&) = delete;

    /// Empty when no block is free or `bytes` is 0 or over kBlockBytesMax. Takes the free block at
    /// the lowest address of the smallest size that fits, so that memory once used is used again.
    Buffer try_acquire(std::size_t bytes);
    /// The whole mapping, for registration.
    std::span<std::byte> memory() const { return memory_; }
    std::size_t free_bytes() const { return free_bytes_; }

  private:
    friend class Buffer;
    BufferArena() = default;
    void release(std::byte* data, std::size_t size) noexcept;

    static constexpr unsigned kOrders = 14;  // 4 KiB << 13 = 32 MiB
    std::span<std::byte> memory_;
    std::size_t free_bytes_ = 0;
    /// Bit i of free_[k] is set while block i of size 4 KiB << k is free and not part of a larger
    /// free block. About two bits a page in all.
    std::array<BitTree, kOrders> free_;
};

}  // namespace warpraid::io
