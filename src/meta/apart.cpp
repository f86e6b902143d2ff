#include "meta/apart.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "format/bitmap_page.h"
#include "format/superblock.h"
#include "meta/superblock_io.h"

namespace warpraid::meta {
namespace {

// Fits the blocks of every drive.
constexpr std::size_t kMarkBytes = 4096;

constexpr std::uint64_t kHeadPlace = format::kSuperblockOffset + 3 * format::kSuperblockBytes;
static_assert(kHeadPlace >= format::kSuperblockOffset + format::kSuperblockBytes);
static_assert(kHeadPlace + kMarkBytes <= format::kBitmapOffset);

std::uint64_t tail_place(const io::BlockingDrive& drive) {
    return format::superblock_copy_offset(drive.limits().size_bytes) + 3 * format::kSuperblockBytes;
}

std::vector<std::byte> make_mark(Random& random) {
    const std::string text =
        fmt::format("Warpraid looked whether this drive is another one: {:016x}{:016x}",
                    random.next(), random.next());
    std::vector<std::byte> mark(kMarkBytes);
    std::ranges::copy(std::as_bytes(std::span(text)), mark.begin());
    return mark;
}

/// Whether what is written to `copy` appears on `keeper`.
Result<bool> passes_through(io::BlockingDrive& copy, std::uint64_t copy_offset,
                            io::BlockingDrive& keeper, std::uint64_t keeper_offset,
                            std::span<const std::byte> mark) {
    std::vector<std::byte> before(mark.size());
    std::vector<std::byte> kept(mark.size());
    std::vector<std::byte> now(mark.size());
    WARPRAID_TRY(copy.read(copy_offset, before));
    WARPRAID_TRY(keeper.read(keeper_offset, kept));
    Status looked = copy.write(copy_offset, mark);
    if (looked.ok()) looked = copy.flush();
    if (looked.ok()) looked = keeper.read(keeper_offset, now);
    Status restored = copy.write(copy_offset, before);
    if (restored.ok()) restored = copy.flush();
    WARPRAID_TRY(std::move(looked));
    WARPRAID_TRY(std::move(restored));
    return now != kept;
}

}  // namespace

Status prove_apart(io::BlockingDrive& copy, io::BlockingDrive& keeper, Random& random) {
    const std::vector<std::byte> mark = make_mark(random);
    WARPRAID_TRY_ASSIGN(bool is_one, passes_through(copy, kHeadPlace, keeper, kHeadPlace, mark));
    if (!is_one) {
        WARPRAID_TRY_ASSIGN(
            is_one, passes_through(copy, tail_place(copy), keeper, tail_place(keeper), mark));
    }
    if (!is_one) return success();
    return Error{ErrorCode::kWrongState, describe(copy.identity()) + " is another name of " +
                                             describe(keeper.identity()) +
                                             ": what is written to one appears on the other"};
}

}  // namespace warpraid::meta
