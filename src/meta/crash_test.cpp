// Crashes at every sector of every command of a commit: what is found afterwards is the old record
// or the new one, on all drives, whole.
#include <gtest/gtest.h>

#include "meta/meta_test_support.h"

namespace warpraid::meta {
namespace {

using test::CachedDrive;
using test::CutDrive;
using test::Power;
using test::Shelf;

/// A group of three with something to tell apart old and new.
class Crash : public ::testing::Test {
  protected:
    Crash() : record_(shelf_.create(geometry::Level::kRaid5, 3)) { save(); }
    void save() {
        saved_.clear();
        for (auto& drive : shelf_.drives) saved_.push_back(test::reserves_of(*drive.bytes));
    }
    void restore() {
        for (std::size_t i = 0; i < saved_.size(); ++i) {
            test::restore_reserves(*shelf_.drives[i].bytes, saved_[i]);
        }
    }
    /// Commits `record` with the power failing after `sectors`; returns the sectors a whole one
    /// takes.
    std::uint64_t commit_with_cut(format::GroupRecord record, std::uint64_t sectors) {
        Power power{sectors, 0};
        std::vector<std::unique_ptr<CutDrive>> cut;
        std::vector<MemberDrive> members;
        for (std::uint8_t slot = 0; slot < 3; ++slot) {
            cut.push_back(std::make_unique<CutDrive>(*shelf_.drives[slot].face, power));
            if (format::is_live(record.members[slot])) {
                members.push_back({Slot(slot), cut.back().get()});
            }
        }
        shelf_.store.commit(record, members);
        return power.sectors_used;
    }
    /// All drives are members in sync of a record with one of these names, which is returned.
    std::string expect_one_of(const std::set<std::string>& names, const std::string& when) {
        const Candidate candidate = shelf_.find({0, 1, 2});
        EXPECT_TRUE(candidate.assembly.has_value()) << when << Shelf::problem_text(candidate);
        if (!candidate.assembly) return {};
        const format::GroupRecord& found = candidate.assembly->record;
        EXPECT_TRUE(names.count(found.name)) << when << found.name;
        for (const format::Member& member : found.members) {
            EXPECT_EQ(member.state, format::MemberState::kInSync) << when;
        }
        found_ = found;
        return found.name;
    }

    Shelf shelf_;
    format::GroupRecord record_;
    format::GroupRecord found_;
    std::vector<std::vector<std::byte>> saved_;
};

TEST_F(Crash, at_any_sector_leaves_the_old_or_the_new_record) {
    format::GroupRecord next = record_;
    next.name = "new";
    const std::uint64_t total = commit_with_cut(next, ~0ull);
    ASSERT_EQ(total, 3u * 2u * format::kSuperblockBytes / 512);
    std::set<std::string> seen;
    for (std::uint64_t sectors = 0; sectors <= total; ++sectors) {
        restore();
        commit_with_cut(next, sectors);
        seen.insert(expect_one_of({"data", "new"}, std::to_string(sectors) + " sectors: "));
    }
    EXPECT_EQ(seen, (std::set<std::string>{"data", "new"}));
}

TEST_F(Crash, twice_in_a_row_leaves_one_of_three_records) {
    format::GroupRecord next = record_;
    next.name = "new";
    const std::uint64_t total = commit_with_cut(next, ~0ull);
    for (std::uint64_t first = 1; first < total; first += 7) {
        restore();
        commit_with_cut(next, first);
        const std::string after_first = expect_one_of({"data", "new"}, "first ");
        const auto middle = saved_;
        save();
        format::GroupRecord last = found_;
        last.name = "newest";
        for (std::uint64_t second = 0; second <= 3 * total / 2; second += 5) {
            restore();
            commit_with_cut(last, second);
            expect_one_of({after_first, "newest"},
                          std::to_string(first) + " and " + std::to_string(second) + " sectors: ");
        }
        saved_ = middle;
    }
}

TEST_F(Crash, with_unflushed_sectors_lost_at_random_leaves_the_old_or_the_new_record) {
    constexpr std::uint64_t kSeed = 20'261'202;
    std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
    SeededRandom random(kSeed);
    for (int round = 0; round < 400; ++round) {
        restore();
        test::PowerByCommand power{random.below(13)};
        std::vector<std::unique_ptr<CachedDrive>> cached;
        std::vector<MemberDrive> members;
        for (std::uint8_t slot = 0; slot < 3; ++slot) {
            cached.push_back(std::make_unique<CachedDrive>(*shelf_.drives[slot].face, power));
            members.push_back({Slot(slot), cached.back().get()});
        }
        format::GroupRecord next = record_;
        next.name = "new";
        shelf_.store.commit(next, members);
        for (auto& drive : cached) drive->lose_power(random);
        expect_one_of({"data", "new"}, "round " + std::to_string(round) + ": ");
    }
}

TEST_F(Crash, many_in_a_row_never_lose_a_drive) {
    constexpr std::uint64_t kSeed = 77;
    std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
    SeededRandom random(kSeed);
    for (int chain = 0; chain < 20; ++chain) {
        restore();
        std::string before = expect_one_of({"data"}, "fresh ");
        for (int crash = 0; crash < 20; ++crash) {
            format::GroupRecord next = found_;
            next.name = std::to_string(crash);
            commit_with_cut(next, random.below(300));
            before = expect_one_of({before, next.name}, "crash " + next.name + ": ");
        }
    }
}

/// A commit was cut short when one drive had it; then the group went on without that drive.
TEST_F(Crash, a_commit_that_was_never_in_force_is_no_split_brain) {
    format::GroupRecord next = record_;
    next.name = "new";
    commit_with_cut(next, format::kSuperblockBytes / 512);
    shelf_.run({1, 2});
    shelf_.run({1, 2}, {}, 3);
    const Candidate candidate = shelf_.find({0, 1, 2});
    ASSERT_TRUE(candidate.assembly.has_value()) << Shelf::problem_text(candidate);
    EXPECT_EQ(candidate.assembly->record.name, "data");
    EXPECT_EQ(candidate.assembly->record.members[0].state, format::MemberState::kMissing);
    EXPECT_EQ(candidate.assembly->outdated, std::vector<Slot>{Slot(0)});
}

TEST_F(Crash, a_cut_commit_and_another_of_the_same_generation_are_told_apart) {
    format::GroupRecord next = record_;
    next.name = "new";
    commit_with_cut(next, format::kSuperblockBytes / 512);
    const format::GroupRecord went_on = shelf_.run({1, 2});
    EXPECT_EQ(went_on.generation, record_.generation.next());
    const Candidate candidate = shelf_.find({0, 1, 2});
    ASSERT_TRUE(candidate.assembly.has_value()) << Shelf::problem_text(candidate);
    EXPECT_EQ(candidate.assembly->record.commit_id, went_on.commit_id);
    EXPECT_EQ(candidate.assembly->outdated, std::vector<Slot>{Slot(0)});
}

/// The drive missed the commit that the others remember as its last one, and made another of the
/// same number by itself.
TEST_F(Crash, a_history_that_starts_with_the_number_of_a_missed_commit_is_a_split_brain) {
    format::GroupRecord next = record_;
    next.name = "new";
    commit_with_cut(next, 2 * format::kSuperblockBytes / 512);
    shelf_.run({0, 1});
    AssemblyOptions force;
    force.force = true;
    // Drive 2 alone is not enough for RAID 5, so its commit is made by hand.
    format::GroupRecord own = record_;
    for (const std::size_t slot : {0u, 1u}) {
        format::leave(own.members[slot], format::MemberState::kMissing,
                      format::LeaveReason::kAbsent, 1);
    }
    ASSERT_TRUE(shelf_.store.commit(own, shelf_.faces(own, {0, 1, 2})).ok());
    EXPECT_EQ(own.generation, record_.generation.next());
    EXPECT_EQ(test::code_of(shelf_.find({0, 1, 2}, force)), ErrorCode::kSplitBrain);
}

TEST_F(Crash, while_a_spare_becomes_a_member_leaves_a_spare_or_a_member) {
    format::GroupRecord degraded = record_;
    format::leave(degraded.members[2], format::MemberState::kFailed, format::LeaveReason::kOperator,
                  1);
    ASSERT_TRUE(shelf_.store.commit(degraded, shelf_.faces(degraded, {0, 1, 2})).ok());
    const std::size_t spare = shelf_.add_drive("spare");
    const Uuid identity = Uuid::make(shelf_.random);
    ASSERT_TRUE(shelf_.store
                    .write_spare(*shelf_.drives[spare].face,
                                 {identity, record_.uuid, "spare", test::kDriveBytes})
                    .ok());
    format::GroupRecord next = degraded;
    next.members[2] = shelf_.new_member(spare);
    next.members[2].drive = identity;
    next.members[2].state = format::MemberState::kRebuilding;
    save();
    for (std::uint64_t sectors = 0; sectors <= 200; ++sectors) {
        restore();
        Power power{sectors, 0};
        std::vector<std::unique_ptr<CutDrive>> cut;
        std::vector<MemberDrive> members;
        for (const std::size_t drive : {std::size_t{0}, std::size_t{1}, spare}) {
            cut.push_back(std::make_unique<CutDrive>(*shelf_.drives[drive].face, power));
            members.push_back({Slot(static_cast<std::uint8_t>(std::min<std::size_t>(drive, 2))),
                               cut.back().get()});
        }
        ASSERT_TRUE(shelf_.store.prepare_member(*cut.back(), next, Slot(2)).ok());
        format::GroupRecord copy = next;
        shelf_.store.commit(copy, members);
        const auto found = shelf_.scan({spare});
        ASSERT_TRUE(found[0].superblock.has_value()) << sectors;
        const Candidate candidate = shelf_.find({0, 1, spare});
        ASSERT_TRUE(candidate.assembly.has_value()) << Shelf::problem_text(candidate);
    }
}

}  // namespace
}  // namespace warpraid::meta
