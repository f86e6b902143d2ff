// What each block of a device may hold: the oracle. A block's history starts with what surely
// lasts; behind it come the writes since, done or not. A read may return the last write that was
// done when it was sent, or any later one; after a crash anything of the history. Never anything
// else, and never a mixture. Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace warpraid::sim {

class Model {
  public:
    struct Write {
        std::uint64_t number;
        bool zeroes;
        std::uint64_t done_order = 0;  // 0: not done
    };
    /// What a read may see of one block: these, and every write after them.
    struct Sight {
        std::vector<Write> writes;
        std::uint32_t end = 0;  // how many writes the block had had
    };

    /// The device is zero at first.
    Model(std::uint64_t blocks, std::uint32_t block_bytes);

    std::uint32_t block_bytes() const { return block_bytes_; }
    std::uint64_t blocks() const { return histories_.size(); }

    /// A write that starts now, of blocks that no other write is under way to: its number, and what
    /// it is to write. `zeroes`: the blocks become zero.
    std::uint64_t start_write(std::uint64_t first, std::uint64_t count, bool zeroes);
    void fill(std::uint64_t write, std::uint64_t first, std::span<std::byte> to) const;
    /// Its end. Without `done` it may have happened or not. `lasts`: it was sent with FUA.
    void end_write(std::uint64_t write, std::uint64_t first, std::uint64_t count, bool done,
                   bool lasts);
    /// What was done by now lasts when the flush that is sent now has ended well.
    std::uint64_t start_flush() const { return next_order_; }
    void end_flush(std::uint64_t started);
    /// For a read that is sent now: what it may see of each block.
    std::vector<Sight> start_read(std::uint64_t first, std::uint64_t count) const;
    /// Nothing, or what is wrong with what the read returned.
    std::optional<std::string> check(std::uint64_t first, std::span<const std::byte> found,
                                     std::span<const Sight> sights) const;
    /// The host stopped: of what had not lasted yet nobody knows.
    void crash();

  private:
    struct History {
        std::vector<Write> writes;  // never empty
        std::uint32_t dropped = 0;  // writes that were in front and cannot be seen any more
        std::uint32_t floor = 0;    // counted with those that were dropped
    };
    void drop_before(History& history, std::size_t index);
    void fill_block(const Write& write, std::uint64_t block, std::span<std::byte> to) const;

    std::uint32_t block_bytes_;
    std::uint64_t next_number_ = 1;
    std::uint64_t next_order_ = 1;
    std::vector<History> histories_;
};

}  // namespace warpraid::sim
