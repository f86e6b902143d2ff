// Groups over RAM drives for tests of meta/: created, lost, cut off in mid-commit, found again.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "io/ram.h"
#include "meta/assembly.h"
#include "meta/store.h"

namespace warpraid::meta::test {

inline constexpr std::uint64_t kDriveBytes = 64 * kMiB;

inline std::shared_ptr<io::RamStore> make_drive_bytes(const std::string& serial,
                                                      std::uint64_t size_bytes = kDriveBytes,
                                                      std::uint32_t block_bytes = 512) {
    return io::make_ram_store(serial, size_bytes, block_bytes);
}

/// The parts of a drive's reserves that a commit changes.
inline constexpr std::size_t kHeadPart = 192 * kKiB;
inline constexpr std::size_t kTailPart = 32 * kKiB;
inline std::vector<std::byte> reserves_of(io::RamStore& bytes) {
    const std::byte* head = io::ram_bytes(bytes);
    const std::byte* tail = head + format::superblock_copy_offset(kDriveBytes);
    std::vector<std::byte> reserves(head, head + kHeadPart);
    reserves.insert(reserves.end(), tail, tail + kTailPart);
    return reserves;
}
inline void restore_reserves(io::RamStore& bytes, const std::vector<std::byte>& reserves) {
    std::byte* head = io::ram_bytes(bytes);
    std::byte* tail = head + format::superblock_copy_offset(kDriveBytes);
    std::copy_n(reserves.begin(), kHeadPart, head);
    std::copy_n(reserves.begin() + kHeadPart, kTailPart, tail);
}

/// A power supply shared by several drives: fails after so many sectors have been written.
struct Power {
    std::uint64_t sectors_left = ~0ull;
    std::uint64_t sectors_used = 0;
    bool take() {
        ++sectors_used;
        if (sectors_left == 0) return false;
        --sectors_left;
        return true;
    }
};

/// Persists sector after sector as long as the power lasts, and claims success either way.
class CutDrive final : public io::BlockingDrive {
  public:
    CutDrive(io::BlockingDrive& inner, Power& power) : inner_(inner), power_(power) {}
    const io::DriveIdentity& identity() const override { return inner_.identity(); }
    const io::DriveLimits& limits() const override { return inner_.limits(); }
    Status read(std::uint64_t offset, std::span<std::byte> to) override {
        return inner_.read(offset, to);
    }
    Status write(std::uint64_t offset, std::span<const std::byte> from) override {
        for (std::size_t at = 0; at < from.size(); at += 512) {
            if (power_.take()) WARPRAID_TRY(inner_.write(offset + at, from.subspan(at, 512)));
        }
        return success();
    }
    Status flush() override { return inner_.flush(); }
    Status probe() override { return inner_.probe(); }

  private:
    io::BlockingDrive& inner_;
    Power& power_;
};

/// A power supply that fails after so many commands of several drives.
struct PowerByCommand {
    std::uint64_t commands_left = 0;
    bool take() {
        if (commands_left == 0) return false;
        --commands_left;
        return true;
    }
};

/// A volatile cache: writes are kept until a flush; lose_power() persists any part of them.
class CachedDrive final : public io::BlockingDrive {
  public:
    CachedDrive(io::BlockingDrive& inner, PowerByCommand& power) : inner_(inner), power_(power) {}
    const io::DriveIdentity& identity() const override { return inner_.identity(); }
    const io::DriveLimits& limits() const override { return inner_.limits(); }
    Status read(std::uint64_t offset, std::span<std::byte> to) override {
        WARPRAID_TRY(inner_.read(offset, to));
        for (std::size_t at = 0; at < to.size(); at += 512) {
            const auto cached = cache_.find(offset + at);
            if (cached != cache_.end()) {
                std::copy(cached->second.begin(), cached->second.end(),
                          to.begin() + static_cast<std::ptrdiff_t>(at));
            }
        }
        return success();
    }
    Status write(std::uint64_t offset, std::span<const std::byte> from) override {
        if (!power_.take()) return success();
        for (std::size_t at = 0; at < from.size(); at += 512) {
            const auto part = from.subspan(at, 512);
            cache_[offset + at] = std::vector<std::byte>(part.begin(), part.end());
        }
        return success();
    }
    Status flush() override {
        if (!power_.take()) return success();
        for (const auto& [offset, sector] : cache_) WARPRAID_TRY(inner_.write(offset, sector));
        cache_.clear();
        return success();
    }
    Status probe() override { return inner_.probe(); }
    void lose_power(Random& random) {
        for (const auto& [offset, sector] : cache_) {
            if ((random.next() & 1) == 0) continue;
            EXPECT_TRUE(inner_.write(offset, sector).ok());
        }
        cache_.clear();
    }

  private:
    io::BlockingDrive& inner_;
    PowerByCommand& power_;
    std::map<std::uint64_t, std::vector<std::byte>> cache_;
};

/// Fails every write from the moment it is told to.
class BrokenDrive final : public io::BlockingDrive {
  public:
    explicit BrokenDrive(io::BlockingDrive& inner) : inner_(inner) {}
    const io::DriveIdentity& identity() const override { return inner_.identity(); }
    const io::DriveLimits& limits() const override { return inner_.limits(); }
    Status read(std::uint64_t offset, std::span<std::byte> to) override {
        if (reads_fail) return Error{ErrorCode::kIo, "broken for the test"};
        return inner_.read(offset, to);
    }
    Status write(std::uint64_t offset, std::span<const std::byte> from) override {
        if (writes_left == 0) return Error{ErrorCode::kIo, "broken for the test"};
        --writes_left;
        return inner_.write(offset, from);
    }
    Status flush() override { return inner_.flush(); }
    Status probe() override { return inner_.probe(); }
    std::uint64_t writes_left = 0;
    bool reads_fail = false;

  private:
    io::BlockingDrive& inner_;
};

/// A drive on the shelf: bytes that outlive any use of them, and its blocking face.
struct ShelfDrive {
    explicit ShelfDrive(const std::string& serial, std::uint64_t size_bytes = kDriveBytes,
                        std::uint32_t block_bytes = 512)
        : bytes(make_drive_bytes(serial, size_bytes, block_bytes)),
          face(io::make_ram_blocking_drive(bytes)) {}
    std::shared_ptr<io::RamStore> bytes;
    std::unique_ptr<io::BlockingDrive> face;
};

/// Drives d0, d1, ... and a group made of them in that order.
class Shelf {
  public:
    explicit Shelf(std::uint64_t seed = 1) : random(seed), store(random) {}

    std::size_t add_drive(const std::string& serial, std::uint64_t size_bytes = kDriveBytes) {
        drives.emplace_back(serial, size_bytes);
        return drives.size() - 1;
    }

    /// A committed group over new drives.
    format::GroupRecord create(geometry::Level level, std::uint32_t members,
                               const std::string& name = "data") {
        format::GroupRecord record;
        record.uuid = Uuid::make(random);
        record.name = name;
        record.created_ns = ++created_;
        record.shape = {level, members, 2, 64 * kKiB, 512, 61 * kMiB};
        record.region_stripes = 16;
        std::vector<std::size_t> slots;
        for (std::uint32_t slot = 0; slot < members; ++slot) {
            slots.push_back(add_drive("S" + std::to_string(drives.size())));
            record.members.push_back(new_member(slots.back()));
        }
        const auto used = faces(record, slots);
        for (const MemberDrive& member : used) {
            EXPECT_TRUE(store.prepare_member(*member.drive, record, member.slot).ok());
        }
        EXPECT_TRUE(store.commit(record, used).ok());
        return record;
    }

    format::Member new_member(std::size_t drive) {
        format::Member member;
        member.drive = Uuid::make(random);
        member.serial = drives[drive].face->identity().serial;
        member.model = drives[drive].face->identity().model;
        member.path = drives[drive].face->identity().path;
        member.drive_bytes = drives[drive].face->limits().size_bytes;
        member.data_offset = kMiB;
        return member;
    }

    /// The live members' drives; `by_slot` says which drive fills which slot.
    std::vector<MemberDrive> faces(const format::GroupRecord& record,
                                   const std::vector<std::size_t>& by_slot) {
        std::vector<MemberDrive> result;
        for (std::uint8_t slot = 0; slot < record.members.size(); ++slot) {
            if (format::is_live(record.members[slot])) {
                result.push_back({Slot(slot), drives[by_slot[slot]].face.get()});
            }
        }
        return result;
    }

    std::vector<FoundDrive> scan(const std::vector<std::size_t>& present) {
        std::vector<FoundDrive> found;
        for (const std::size_t index : present) found.push_back(examine(*drives[index].face));
        return found;
    }
    std::vector<FoundDrive> scan_all() {
        std::vector<std::size_t> all(drives.size());
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
        return scan(all);
    }

    /// Assembles the only group found on `present`.
    Candidate find(const std::vector<std::size_t>& present, const AssemblyOptions& options = {}) {
        auto candidates = assemble(scan(present), options);
        EXPECT_EQ(candidates.size(), 1u);
        return candidates.empty() ? Candidate{} : std::move(candidates.front());
    }

    /// Starts the group on `present` (drive i fills slot i) and commits `extra` + 1 times, as a
    /// start and a stop with departures would.
    format::GroupRecord run(const std::vector<std::size_t>& present,
                            const AssemblyOptions& options = {}, int extra = 0) {
        Candidate candidate = find(present, options);
        EXPECT_TRUE(candidate.assembly.has_value()) << problem_text(candidate);
        if (!candidate.assembly) return {};
        format::GroupRecord record = candidate.assembly->record;
        std::vector<std::size_t> by_slot(record.members.size());
        for (std::size_t i = 0; i < by_slot.size(); ++i) {
            if (candidate.assembly->drives[i]) by_slot[i] = present[*candidate.assembly->drives[i]];
        }
        for (int i = 0; i <= extra; ++i) {
            EXPECT_TRUE(store.commit(record, faces(record, by_slot)).ok());
        }
        return record;
    }

    static std::string problem_text(const Candidate& candidate) {
        if (!candidate.problem) return "no problem";
        return std::string(to_text(candidate.problem->code)) + ": " + candidate.problem->message;
    }

    SeededRandom random;
    Store store;
    std::vector<ShelfDrive> drives;

  private:
    std::uint64_t created_ = 0;
};

inline ErrorCode code_of(const Candidate& candidate) {
    return candidate.problem ? candidate.problem->code : ErrorCode::kInternal;
}

}  // namespace warpraid::meta::test
