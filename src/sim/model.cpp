#include "sim/model.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace warpraid::sim {

namespace {

constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

/// Every word of a block says which block and which write it is of.
std::uint64_t word_of(std::uint64_t number, std::uint64_t block, std::uint64_t index) {
    std::uint64_t value = number * 0x9e37'79b9'7f4a'7c15 ^ block * 0xbf58'476d'1ce4'e5b9 ^ index;
    value ^= value >> 31;
    return value * 0x94d0'49bb'1331'11eb;
}

}  // namespace

Model::Model(std::uint64_t blocks, std::uint32_t block_bytes)
    : block_bytes_(block_bytes), histories_(blocks, History{{{0, true, 1}}, 0, 0}) {}

std::uint64_t Model::start_write(std::uint64_t first, std::uint64_t count, bool zeroes) {
    WARPRAID_ASSERT(first + count <= blocks());
    const std::uint64_t number = next_number_++;
    for (std::uint64_t block = first; block < first + count; ++block) {
        histories_[block].writes.push_back({number, zeroes});
    }
    return number;
}

void Model::fill_block(const Write& write, std::uint64_t block, std::span<std::byte> to) const {
    if (write.zeroes) {
        std::memset(to.data(), 0, to.size());
        return;
    }
    for (std::size_t at = 0; at < to.size(); at += kWordBytes) {
        const std::uint64_t word = word_of(write.number, block, at);
        std::memcpy(to.data() + at, &word, kWordBytes);
    }
}

void Model::fill(std::uint64_t write, std::uint64_t first, std::span<std::byte> to) const {
    for (std::size_t at = 0; at < to.size(); at += block_bytes_) {
        fill_block({write, false}, first + at / block_bytes_, to.subspan(at, block_bytes_));
    }
}

void Model::drop_before(History& history, std::size_t index) {
    history.writes.erase(history.writes.begin(),
                         history.writes.begin() + static_cast<std::ptrdiff_t>(index));
    history.dropped += static_cast<std::uint32_t>(index);
    history.floor = std::max(history.floor, history.dropped);
}

void Model::end_write(std::uint64_t write, std::uint64_t first, std::uint64_t count, bool done,
                      bool lasts) {
    if (!done) return;
    const std::uint64_t order = next_order_++;
    for (std::uint64_t block = first; block < first + count; ++block) {
        History& history = histories_[block];
        WARPRAID_ASSERT(history.writes.back().number == write);
        history.writes.back().done_order = order;
        const std::size_t index = history.writes.size() - 1;
        history.floor = history.dropped + static_cast<std::uint32_t>(index);
        if (lasts) drop_before(history, index);
    }
}

void Model::end_flush(std::uint64_t started) {
    for (History& history : histories_) {
        for (std::size_t index = history.writes.size(); index-- > 1;) {
            const std::uint64_t order = history.writes[index].done_order;
            if (order == 0 || order >= started) continue;
            drop_before(history, index);
            break;
        }
    }
}

std::vector<Model::Sight> Model::start_read(std::uint64_t first, std::uint64_t count) const {
    std::vector<Sight> sights;
    for (std::uint64_t block = first; block < first + count; ++block) {
        const History& history = histories_[block];
        const auto from = history.writes.begin() + (history.floor - history.dropped);
        sights.push_back({{from, history.writes.end()},
                          history.dropped + static_cast<std::uint32_t>(history.writes.size())});
    }
    return sights;
}

std::optional<std::string> Model::check(std::uint64_t first, std::span<const std::byte> found,
                                        std::span<const Sight> sights) const {
    std::vector<std::byte> wanted(block_bytes_);
    for (std::size_t index = 0; index < sights.size(); ++index) {
        const std::uint64_t block = first + index;
        const auto bytes = found.subspan(index * block_bytes_, block_bytes_);
        const auto is = [&](const Write& write) {
            fill_block(write, block, wanted);
            return std::memcmp(wanted.data(), bytes.data(), bytes.size()) == 0;
        };
        const History& history = histories_[block];
        std::vector<Write> allowed = sights[index].writes;
        for (std::size_t at = 0; at < history.writes.size(); ++at) {
            if (history.dropped + at >= sights[index].end) allowed.push_back(history.writes[at]);
        }
        if (std::any_of(allowed.begin(), allowed.end(), is)) continue;
        std::string text = "block " + std::to_string(block) + " holds none of the writes";
        for (const Write& write : allowed) text += " " + std::to_string(write.number);
        const auto other = std::find_if(history.writes.begin(), history.writes.end(), is);
        if (other != history.writes.end()) text += ", but write " + std::to_string(other->number);
        return text;
    }
    return std::nullopt;
}

void Model::crash() {
    for (History& history : histories_) {
        history.floor = history.dropped;
        for (Write& write : history.writes) write.done_order = 0;
    }
}

}  // namespace warpraid::sim
