// Writing superblocks: the order that survives a crash at any command. All first copies, flush, all
// second copies, flush; so at any moment one copy of each drive is whole. A commit is in force once
// the first copies are durable on every drive that stays a member.
//
// Before a new generation is begun, every drive that took part in the last one holds it in its
// second copy (a crash may have left some behind; they are caught up first). So a drive that was
// live at generation g is found at g or g - 1 and nowhere else, and any other find is a history of
// its own: assembly relies on this.
//
// Blocking; one thread at a time per group.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "format/bitmap_page.h"
#include "format/md_protective.h"
#include "format/superblock.h"
#include "io/drive.h"

namespace warpraid::meta {

/// A live member's drive.
struct MemberDrive {
    Slot slot;
    io::BlockingDrive* drive = nullptr;
};

/// What a commit came to. A drive that could not be written is named, so that the caller can commit
/// again without it.
struct CommitOutcome {
    std::vector<Slot> failed;
    bool ok() const { return failed.empty(); }
};

class Store {
  public:
    explicit Store(Random& random) : random_(random) {}

    /// Moves `record` to the next generation (new commit id, live members' last_* fields) and
    /// writes it to `drives`: exactly those of the record's live members. When a drive fails,
    /// nothing is promised: the caller calls format::leave() for it and commits again.
    CommitOutcome commit(format::GroupRecord& record, std::span<const MemberDrive> drives);

    /// Before anything else of the drive is overwritten: the first block of the protective MD
    /// superblock, which one write leaves whole or as it was, says from now on which drive of which
    /// group it is to be (read_mark()). Then superblocks and bitmaps that lie there are zeroed: to
    /// every scan the drive is of no group.
    Status claim(io::BlockingDrive& drive, const format::GroupRecord& record, Slot slot);
    /// What a drive needs once, before the first commit with it: the reserved areas are cleared of
    /// what others left there, and get the protective MD superblock and a bitmap in which only
    /// `dirty` regions (bits, LSB first) are set. A superblock of ours stays until the commit
    /// replaces it.
    Status prepare_member(io::BlockingDrive& drive, const format::GroupRecord& record, Slot slot,
                          std::span<const std::uint64_t> dirty = {});
    /// Clears and protects like prepare_member(), then writes both copies.
    Status write_spare(io::BlockingDrive& drive, const format::SpareRecord& spare);
    /// Zeroes everything of ours: the drive is blank to every scan.
    Status clear(io::BlockingDrive& drive);

    /// The union of the bitmaps of `drives`. Bits are durable on every member in sync, so a page
    /// that one of those holds is believed though another's is torn; a page that no member in sync
    /// holds counts as all dirty.
    Result<format::BitmapContent> read_bitmap(const format::GroupRecord& record,
                                              std::uint32_t regions,
                                              std::span<const MemberDrive> drives);

  private:
    Random& random_;
};

/// Which drive it is as the protective MD superblock says, if there is one.
Result<std::optional<format::ProtectiveMark>> read_mark(io::BlockingDrive& drive);

}  // namespace warpraid::meta
