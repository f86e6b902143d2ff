// Sample values for tests of format/, made from a seed; used by tests, golden files and fuzz
// replay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "base/limits.h"
#include "base/random.h"
#include "format/gpt.h"
#include "format/superblock.h"

namespace warpraid::format::test {

inline std::string random_text(SeededRandom& random, std::size_t length_max) {
    std::string text(random.below(length_max + 1), '\0');
    for (char& c : text) c = static_cast<char>(random.next());
    return text;
}

inline geometry::Shape random_shape(SeededRandom& random) {
    constexpr geometry::Level kLevels[] = {geometry::Level::kRaid0, geometry::Level::kRaid1,
                                           geometry::Level::kRaid5, geometry::Level::kRaid6,
                                           geometry::Level::kRaid10};
    geometry::Shape shape;
    shape.level = kLevels[random.below(5)];
    const std::uint32_t least = geometry::members_min(shape.level);
    shape.members = least + static_cast<std::uint32_t>(
                                random.below(geometry::members_max(shape.level) - least + 1));
    shape.copies = shape.level == geometry::Level::kRaid10
                       ? 2 + static_cast<std::uint32_t>(random.below(shape.members - 1))
                       : 1;
    shape.chunk_bytes = static_cast<std::uint32_t>(limits::kChunkBytesMin << random.below(9));
    shape.block_bytes = random.below(2) == 0 ? 512 : 4096;
    shape.member_data_bytes = 64 * kMiB + random.below(100 * kTiB);
    return shape;
}

inline Member random_member(SeededRandom& random, const geometry::Shape& shape) {
    Member member;
    member.state = static_cast<MemberState>(random.below(4));
    if (!is_live(member) && random.below(4) == 0) return member;
    member.drive = Uuid::make(random);
    member.serial = random_text(random, kSerialBytesMax);
    member.model = random_text(random, kModelBytesMax);
    member.path = random_text(random, kPathBytesMax);
    member.data_offset = kMiB + 512 * random.below(1000);
    member.drive_bytes = member.data_offset + shape.member_data_bytes + kMiB + random.below(kGiB);
    member.reason = static_cast<LeaveReason>(random.below(8));
    member.since_ns = random.next();
    member.rebuilt_bytes = random.below(shape.member_data_bytes + 1);
    member.by_bitmap = random.below(2) == 0;
    member.last_generation = Generation(random.next());
    member.last_commit_id = random.next();
    return member;
}

inline GroupRecord random_record(SeededRandom& random) {
    GroupRecord record;
    record.uuid = Uuid::make(random);
    record.name = random_text(random, limits::kGroupNameBytesMax);
    record.shape = random_shape(random);
    record.region_stripes = default_region_stripes(geometry::Layout::make(record.shape).value());
    record.created_ns = random.next();
    record.generation = Generation(random.next());
    record.commit_id = random.next();
    record.previous_commit_id = random.next();
    record.destroyed = random.below(2) == 0;
    record.clean = random.below(2) == 0;
    record.table = static_cast<Table>(random.below(3));
    for (std::uint32_t i = 0; i < record.shape.members; ++i) {
        record.members.push_back(random_member(random, record.shape));
    }
    return record;
}

/// A member of a random group, or a spare.
inline Superblock random_superblock(SeededRandom& random) {
    Superblock superblock;
    superblock.copy = static_cast<std::uint8_t>(random.below(2));
    superblock.drive = Uuid::make(random);
    if (random.below(4) == 0) {
        superblock.content =
            SpareRecord{superblock.drive, random.below(2) == 0 ? Uuid{} : Uuid::make(random),
                        random_text(random, kSerialBytesMax), random.below(limits::kDriveBytesMax)};
        return superblock;
    }
    GroupRecord record = random_record(random);
    superblock.slot = Slot(static_cast<std::uint8_t>(random.below(record.members.size())));
    Member& own = record.members[superblock.slot.get()];
    while (own.drive.is_nil()) own = random_member(random, record.shape);
    superblock.drive = own.drive;
    superblock.content = std::move(record);
    return superblock;
}

inline auto fields(const Member& m) {
    return std::tie(m.drive, m.serial, m.model, m.path, m.drive_bytes, m.data_offset, m.state,
                    m.reason, m.since_ns, m.rebuilt_bytes, m.by_bitmap, m.last_generation,
                    m.last_commit_id);
}
inline auto fields(const geometry::Shape& s) {
    return std::tie(s.level, s.members, s.copies, s.chunk_bytes, s.block_bytes,
                    s.member_data_bytes);
}
inline auto fields(const SpareRecord& s) {
    return std::tie(s.drive, s.group, s.serial, s.drive_bytes);
}
inline auto fields(const GroupRecord& r) {
    return std::tie(r.uuid, r.name, r.region_stripes, r.created_ns, r.generation, r.commit_id,
                    r.previous_commit_id, r.destroyed, r.clean, r.table);
}
inline auto fields(const Partition& p) {
    return std::tie(p.index, p.type, p.uuid, p.name, p.start, p.size_bytes, p.attributes);
}

inline bool same(const GroupRecord& a, const GroupRecord& b) {
    if (fields(a) != fields(b) || fields(a.shape) != fields(b.shape)) return false;
    if (a.members.size() != b.members.size()) return false;
    for (std::size_t i = 0; i < a.members.size(); ++i) {
        if (fields(a.members[i]) != fields(b.members[i])) return false;
    }
    return true;
}
inline bool same(const Superblock& a, const Superblock& b) {
    if (a.drive != b.drive || a.copy != b.copy || a.slot != b.slot ||
        a.content.index() != b.content.index()) {
        return false;
    }
    if (const auto* record = std::get_if<GroupRecord>(&a.content)) {
        return same(*record, std::get<GroupRecord>(b.content));
    }
    return fields(std::get<SpareRecord>(a.content)) == fields(std::get<SpareRecord>(b.content));
}

inline bool same(const PartitionTable& a, const PartitionTable& b) {
    if (a.disk != b.disk || a.first_usable != b.first_usable ||
        a.partitions.size() != b.partitions.size()) {
        return false;
    }
    for (std::size_t i = 0; i < a.partitions.size(); ++i) {
        if (fields(a.partitions[i]) != fields(b.partitions[i])) return false;
    }
    return true;
}

inline GptDisk random_disk(SeededRandom& random) {
    const std::uint32_t block = random.below(2) == 0 ? 512 : 4096;
    return {64 * kMiB + block * random.below(1ull << 40), block};
}

inline PartitionTable random_table(SeededRandom& random, const GptDisk& disk) {
    PartitionTable table;
    table.disk = Uuid::make(random);
    table.first_usable = kMiB;
    const std::uint64_t count = random.below(kGptEntries + 1);
    const std::uint64_t room =
        round_down((gpt_usable_end(disk) - kMiB) / kGptEntries, disk.block_bytes);
    for (std::uint32_t index = 0; index < kGptEntries; ++index) {
        if (random.below(kGptEntries) >= count) continue;
        Partition partition;
        partition.index = index;
        partition.type = linux_data_type();
        partition.uuid = Uuid::make(random);
        constexpr const char* kPieces[] = {"a", "ü", "漢", "😀", "-", "/", "\"", "\n"};
        for (std::uint64_t n = random.below(18); n > 0; --n) {
            partition.name += kPieces[random.below(8)];
        }
        partition.start = kMiB + index * room;
        partition.size_bytes = disk.block_bytes * (1 + random.below(room / disk.block_bytes));
        partition.attributes = random.next();
        table.partitions.push_back(std::move(partition));
    }
    return table;
}

}  // namespace warpraid::format::test
