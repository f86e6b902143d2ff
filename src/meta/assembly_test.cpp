// The rules of assembly: who belongs to a group, which record counts, and when not to start.
#include <gtest/gtest.h>

#include "meta/meta_test_support.h"

namespace warpraid::meta {
namespace {

using format::LeaveReason;
using format::MemberState;
using geometry::Level;
using test::code_of;
using test::Shelf;

/// Commits that slots left a running group.
format::GroupRecord lose(Shelf& shelf, format::GroupRecord record,
                         const std::vector<std::size_t>& slots,
                         MemberState state = MemberState::kMissing) {
    for (const std::size_t slot : slots) {
        format::leave(record.members[slot], state, LeaveReason::kTimeout, 5);
    }
    std::vector<std::size_t> by_slot(record.members.size());
    for (std::size_t i = 0; i < by_slot.size(); ++i) by_slot[i] = i;
    EXPECT_TRUE(shelf.store.commit(record, shelf.faces(record, by_slot)).ok());
    return record;
}

TEST(Assembly, finds_roles_by_superblock_in_any_order_of_paths) {
    Shelf shelf;
    const auto record = shelf.create(Level::kRaid5, 5);
    const std::vector<std::size_t> order = {3, 1, 4, 0, 2};
    const Candidate candidate = shelf.find(order);
    ASSERT_TRUE(candidate.assembly.has_value()) << Shelf::problem_text(candidate);
    EXPECT_EQ(candidate.name, "data");
    EXPECT_EQ(candidate.group, record.uuid);
    EXPECT_EQ(candidate.assembly->record.commit_id, record.commit_id);
    for (std::size_t i = 0; i < order.size(); ++i) {
        EXPECT_EQ(candidate.assembly->drives[order[i]], i);
        EXPECT_EQ(candidate.assembly->record.members[i].state, MemberState::kInSync);
    }
    EXPECT_TRUE(candidate.assembly->warnings.empty());
    EXPECT_TRUE(candidate.assembly->damaged.empty());
    EXPECT_EQ(candidate.drives, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

TEST(Assembly, of_nothing_is_nothing) {
    Shelf shelf;
    shelf.add_drive("blank");
    EXPECT_TRUE(assemble({}, {}).empty());
    EXPECT_TRUE(assemble(shelf.scan_all(), {}).empty());
    EXPECT_FALSE(shelf.scan_all()[0].problem.has_value());
}

/// Which losses start by themselves, which need force, which cannot start.
struct Loss {
    Level level;
    std::uint32_t members;
    std::vector<std::size_t> absent;
    ErrorCode without_force;  // kInternal: starts
    bool starts_with_force;
};

class AssemblyQuorum : public ::testing::TestWithParam<Loss> {};

TEST_P(AssemblyQuorum, decides) {
    const Loss& loss = GetParam();
    Shelf shelf;
    shelf.create(loss.level, loss.members);
    std::vector<std::size_t> present;
    for (std::size_t i = 0; i < loss.members; ++i) {
        if (std::find(loss.absent.begin(), loss.absent.end(), i) == loss.absent.end()) {
            present.push_back(i);
        }
    }
    const Candidate plain = shelf.find(present, {.now_ns = 77});
    EXPECT_EQ(code_of(plain), loss.without_force) << Shelf::problem_text(plain);
    if (plain.problem) {
        for (const std::size_t slot : loss.absent) {
            EXPECT_NE(plain.problem->message.find("S" + std::to_string(slot)), std::string::npos);
        }
    } else {
        for (const std::size_t slot : loss.absent) {
            const format::Member& member = plain.assembly->record.members[slot];
            EXPECT_EQ(member.state, MemberState::kMissing);
            EXPECT_EQ(member.reason, LeaveReason::kAbsent);
            EXPECT_EQ(member.since_ns, 77u);
            EXPECT_TRUE(member.by_bitmap);
            EXPECT_EQ(member.serial, "S" + std::to_string(slot));
        }
    }
    EXPECT_EQ(shelf.find(present, {.force = true}).assembly.has_value(), loss.starts_with_force);
}

INSTANTIATE_TEST_SUITE_P(
    Table, AssemblyQuorum,
    ::testing::Values(Loss{Level::kRaid0, 4, {1}, ErrorCode::kIncomplete, false},
                      Loss{Level::kRaid1, 2, {0}, ErrorCode::kQuorumLost, true},
                      Loss{Level::kRaid1, 3, {0}, ErrorCode::kInternal, true},
                      Loss{Level::kRaid1, 3, {0, 2}, ErrorCode::kQuorumLost, true},
                      Loss{Level::kRaid5, 3, {2}, ErrorCode::kInternal, true},
                      Loss{Level::kRaid5, 5, {1, 2}, ErrorCode::kIncomplete, false},
                      Loss{Level::kRaid6, 4, {0, 1}, ErrorCode::kQuorumLost, true},
                      Loss{Level::kRaid6, 5, {0, 1}, ErrorCode::kInternal, true},
                      Loss{Level::kRaid6, 6, {0, 1, 2}, ErrorCode::kIncomplete, false},
                      Loss{Level::kRaid10, 4, {0}, ErrorCode::kInternal, true},
                      Loss{Level::kRaid10, 4, {0, 2}, ErrorCode::kQuorumLost, true},
                      Loss{Level::kRaid10, 4, {0, 1}, ErrorCode::kIncomplete, false}));

TEST(Assembly, of_a_mirror_that_lost_its_half_while_running_needs_no_force) {
    Shelf shelf;
    lose(shelf, shelf.create(Level::kRaid1, 2), {0});
    EXPECT_TRUE(shelf.find({1}).assembly.has_value());
    // The half that left knows nothing of it, so it asks for force.
    EXPECT_EQ(code_of(shelf.find({0})), ErrorCode::kQuorumLost);
}

TEST(Assembly, lets_a_member_that_left_in_sync_return_by_the_bitmap) {
    Shelf shelf;
    const auto record = lose(shelf, shelf.create(Level::kRaid5, 5), {1});
    const format::Member& gone = record.members[1];
    EXPECT_EQ(gone.serial, "S1");
    EXPECT_EQ(gone.since_ns, 5u);
    EXPECT_EQ(gone.reason, LeaveReason::kTimeout);
    shelf.run({0, 2, 3, 4}, {}, 3);
    const Candidate candidate = shelf.find({0, 1, 2, 3, 4});
    ASSERT_TRUE(candidate.assembly.has_value()) << Shelf::problem_text(candidate);
    EXPECT_EQ(candidate.assembly->returning, std::vector<Slot>{Slot(1)});
    EXPECT_TRUE(candidate.assembly->outdated.empty());
    EXPECT_EQ(candidate.assembly->drives[1], 1u);
    EXPECT_EQ(candidate.assembly->record.members[1].state, MemberState::kMissing);
    EXPECT_EQ(candidate.assembly->record.members[1].reason, LeaveReason::kStale);
}

TEST(Assembly, rebuilds_wholly_a_member_that_left_while_it_was_rebuilt) {
    Shelf shelf;
    auto record = shelf.create(Level::kRaid5, 3);
    record.members[2].state = MemberState::kRebuilding;
    record.members[2].rebuilt_bytes = kMiB;
    ASSERT_TRUE(shelf.store.commit(record, shelf.faces(record, {0, 1, 2})).ok());
    const Candidate running = shelf.find({0, 1, 2});
    ASSERT_TRUE(running.assembly.has_value());
    EXPECT_EQ(running.assembly->record.members[2].state, MemberState::kRebuilding);
    EXPECT_EQ(running.assembly->record.members[2].rebuilt_bytes, kMiB);
    lose(shelf, record, {2});
    const Candidate candidate = shelf.find({0, 1, 2});
    ASSERT_TRUE(candidate.assembly.has_value());
    EXPECT_TRUE(candidate.assembly->returning.empty());
    EXPECT_EQ(candidate.assembly->outdated, std::vector<Slot>{Slot(2)});
}

TEST(Assembly, does_not_count_a_rebuilding_member_as_whole) {
    Shelf shelf;
    auto record = shelf.create(Level::kRaid5, 3);
    record.members[2].state = MemberState::kRebuilding;
    ASSERT_TRUE(shelf.store.commit(record, shelf.faces(record, {0, 1, 2})).ok());
    EXPECT_EQ(code_of(shelf.find({1, 2}, {.force = true})), ErrorCode::kIncomplete);
}

TEST(Assembly, leaves_out_a_member_that_was_failed) {
    Shelf shelf;
    lose(shelf, shelf.create(Level::kRaid5, 3), {1}, MemberState::kFailed);
    const Candidate candidate = shelf.find({0, 1, 2});
    ASSERT_TRUE(candidate.assembly.has_value());
    EXPECT_FALSE(candidate.assembly->drives[1].has_value());
    EXPECT_EQ(candidate.assembly->record.members[1].state, MemberState::kFailed);
    EXPECT_EQ(candidate.assembly->warnings.size(), 1u);
}

TEST(Assembly, comes_back_with_the_drive_lost_last_and_not_with_the_one_lost_first) {
    // The second loss is not committed: the group stops (Store::commit).
    Shelf shelf;
    lose(shelf, shelf.create(Level::kRaid5, 5), {0});
    EXPECT_EQ(code_of(shelf.find({0, 2, 3, 4})), ErrorCode::kIncomplete);
    EXPECT_EQ(code_of(shelf.find({2, 3, 4}, {.force = true})), ErrorCode::kIncomplete);
    EXPECT_TRUE(shelf.find({1, 2, 3, 4}).assembly.has_value());
}

TEST(Assembly, ignores_a_member_whose_slot_was_filled_anew) {
    Shelf shelf;
    auto record = lose(shelf, shelf.create(Level::kRaid5, 3), {1});
    const std::size_t fresh = shelf.add_drive("new");
    record.members[1] = shelf.new_member(fresh);
    record.members[1].state = MemberState::kRebuilding;
    const auto drives = shelf.faces(record, {0, fresh, 2});
    ASSERT_TRUE(shelf.store.prepare_member(*drives[1].drive, record, Slot(1)).ok());
    ASSERT_TRUE(shelf.store.commit(record, drives).ok());
    const Candidate candidate = shelf.find({0, 1, 2, fresh});
    ASSERT_TRUE(candidate.assembly.has_value()) << Shelf::problem_text(candidate);
    EXPECT_EQ(candidate.assembly->drives[1], 3u);
    EXPECT_EQ(candidate.assembly->warnings.size(), 1u);
}

// ---- split brain --------------------------------------------------------------------------------

struct Split {
    Level level;
    std::uint32_t members;
    std::vector<std::size_t> first, second;
    int more_commits_of_first, more_commits_of_second;
};

class AssemblySplit : public ::testing::TestWithParam<Split> {};

TEST_P(AssemblySplit, is_refused_until_a_history_is_chosen) {
    const Split& split = GetParam();
    Shelf shelf;
    shelf.create(split.level, split.members);
    const auto one = shelf.run(split.first, {.force = true}, split.more_commits_of_first);
    const auto two = shelf.run(split.second, {.force = true}, split.more_commits_of_second);
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < split.members; ++i) all.push_back(i);

    const Candidate refused = shelf.find(all, {.force = true});
    ASSERT_EQ(code_of(refused), ErrorCode::kSplitBrain) << Shelf::problem_text(refused);
    for (const std::size_t slot : all) {
        EXPECT_NE(refused.problem->message.find("S" + std::to_string(slot)), std::string::npos);
    }
    EXPECT_EQ(code_of(shelf.find(all, {.preferred_drive = "S99"})), ErrorCode::kSplitBrain);

    const AssemblyOptions prefer_first = {
        .preferred_drive = "S" + std::to_string(split.first.back()), .now_ns = 0};
    const Candidate chosen = shelf.find(all, prefer_first);
    ASSERT_TRUE(chosen.assembly.has_value()) << Shelf::problem_text(chosen);
    EXPECT_EQ(chosen.assembly->record.commit_id, one.commit_id);
    EXPECT_GE(chosen.assembly->record.generation, std::max(one.generation, two.generation));
    EXPECT_TRUE(chosen.assembly->returning.empty());
    std::vector<Slot> losers;
    for (const std::size_t slot : split.second)
        losers.emplace_back(static_cast<std::uint8_t>(slot));
    EXPECT_EQ(chosen.assembly->outdated, losers);

    // The choice lasts, also before the losers are rebuilt.
    const auto settled = shelf.run(all, prefer_first);
    const Candidate again = shelf.find(all);
    ASSERT_TRUE(again.assembly.has_value()) << Shelf::problem_text(again);
    EXPECT_EQ(again.assembly->record.commit_id, settled.commit_id);
    EXPECT_EQ(again.assembly->outdated, losers);
    EXPECT_TRUE(again.assembly->returning.empty());
}

INSTANTIATE_TEST_SUITE_P(Table, AssemblySplit,
                         ::testing::Values(Split{Level::kRaid1, 2, {0}, {1}, 0, 0},
                                           Split{Level::kRaid1, 2, {0}, {1}, 3, 0},
                                           Split{Level::kRaid1, 2, {0}, {1}, 0, 5},
                                           Split{Level::kRaid10, 4, {0, 2}, {1, 3}, 1, 1},
                                           Split{Level::kRaid10, 4, {1, 2}, {0, 3}, 0, 4},
                                           Split{Level::kRaid6, 4, {0, 1}, {2, 3}, 2, 2},
                                           Split{Level::kRaid6, 4, {1, 3}, {0, 2}, 6, 1}));

TEST(Assembly, notices_a_half_that_left_and_was_then_started_by_itself) {
    Shelf shelf;
    lose(shelf, shelf.create(Level::kRaid1, 2), {0});
    EXPECT_EQ(code_of(shelf.find({0})), ErrorCode::kQuorumLost);
    shelf.run({0}, {.force = true});
    EXPECT_EQ(code_of(shelf.find({0, 1})), ErrorCode::kSplitBrain);
}

TEST(Assembly, needs_no_choice_where_there_is_no_conflict) {
    Shelf shelf;
    const auto record = lose(shelf, shelf.create(Level::kRaid1, 2), {0});
    const Candidate candidate = shelf.find({0, 1}, {.preferred_drive = "S0"});
    ASSERT_TRUE(candidate.assembly.has_value());
    EXPECT_EQ(candidate.assembly->record.commit_id, record.commit_id);
}

// ---- copies, sizes, damage ----------------------------------------------------------------------

TEST(Assembly, prefers_the_drive_a_superblock_was_written_to_over_its_copy) {
    Shelf shelf;
    shelf.create(Level::kRaid5, 3);
    const std::size_t copy = shelf.add_drive("COPY");
    test::restore_reserves(*shelf.drives[copy].bytes, test::reserves_of(*shelf.drives[1].bytes));
    const Candidate candidate = shelf.find({copy, 0, 1, 2});
    ASSERT_TRUE(candidate.assembly.has_value()) << Shelf::problem_text(candidate);
    EXPECT_EQ(candidate.assembly->drives[1], 2u);
    ASSERT_EQ(candidate.assembly->warnings.size(), 1u);
    EXPECT_NE(candidate.assembly->warnings[0].find("COPY"), std::string::npos);
    // A copy taken while the group ran on is older; that changes nothing.
    shelf.run({0, 1, 2}, {}, 4);
    EXPECT_TRUE(shelf.find({copy, 0, 1, 2}).assembly.has_value());
}

TEST(Assembly, refuses_two_copies_of_which_none_is_the_original) {
    Shelf shelf;
    shelf.create(Level::kRaid5, 3);
    const std::size_t first = shelf.add_drive("COPY-A");
    const std::size_t second = shelf.add_drive("COPY-B");
    for (const std::size_t copy : {first, second}) {
        test::restore_reserves(*shelf.drives[copy].bytes,
                               test::reserves_of(*shelf.drives[1].bytes));
    }
    const Candidate candidate = shelf.find({0, first, 2, second});
    ASSERT_EQ(code_of(candidate), ErrorCode::kDuplicateMember);
    for (const char* text : {"COPY-A", "COPY-B", "ram:COPY-A", "ram:COPY-B"}) {
        EXPECT_NE(candidate.problem->message.find(text), std::string::npos) << text;
    }
}

TEST(Assembly, takes_a_moved_member_and_says_so) {
    Shelf shelf;
    shelf.create(Level::kRaid5, 3);
    const std::size_t moved = shelf.add_drive("MOVED");
    test::restore_reserves(*shelf.drives[moved].bytes, test::reserves_of(*shelf.drives[1].bytes));
    const Candidate candidate = shelf.find({0, moved, 2});
    ASSERT_TRUE(candidate.assembly.has_value());
    EXPECT_EQ(candidate.assembly->record.members[1].serial, "MOVED");
    EXPECT_EQ(candidate.assembly->record.members[1].path, "ram:MOVED");
    EXPECT_EQ(candidate.assembly->warnings.size(), 1u);
}

TEST(Assembly, does_not_use_a_drive_that_shrank_or_has_larger_blocks) {
    Shelf shelf;
    shelf.create(Level::kRaid5, 3);
    auto scan = shelf.scan_all();
    scan[2].limits.size_bytes -= 4096;
    auto candidates = assemble(scan, {});
    ASSERT_TRUE(candidates[0].assembly.has_value());
    EXPECT_FALSE(candidates[0].assembly->drives[2].has_value());
    EXPECT_EQ(candidates[0].assembly->record.members[2].state, MemberState::kMissing);
    EXPECT_FALSE(candidates[0].assembly->record.members[2].by_bitmap) << "it may grow back empty";
    scan[1].limits.logical_block_bytes = 4096;
    candidates = assemble(scan, {});
    ASSERT_EQ(code_of(candidates[0]), ErrorCode::kIncomplete);
    EXPECT_NE(candidates[0].problem->message.find("blocks of 4096"), std::string::npos);
    EXPECT_NE(candidates[0].problem->message.find("67104768 bytes"), std::string::npos);
}

TEST(Assembly, accepts_a_drive_that_grew) {
    Shelf shelf;
    shelf.create(Level::kRaid5, 3);
    auto scan = shelf.scan_all();
    scan[2].limits.size_bytes += kGiB;
    const auto candidates = assemble(scan, {});
    ASSERT_TRUE(candidates[0].assembly.has_value());
    EXPECT_EQ(candidates[0].assembly->record.members[2].drive_bytes, test::kDriveBytes + kGiB);
}

TEST(Assembly, does_not_take_an_old_image_of_a_member_for_the_member) {
    Shelf shelf;
    shelf.create(Level::kRaid5, 3);
    const auto image = test::reserves_of(*shelf.drives[1].bytes);
    const auto record = shelf.run({0, 1, 2}, {}, 4);
    lose(shelf, record, {1});
    test::restore_reserves(*shelf.drives[1].bytes, image);
    const Candidate candidate = shelf.find({0, 1, 2});
    ASSERT_TRUE(candidate.assembly.has_value()) << Shelf::problem_text(candidate);
    EXPECT_TRUE(candidate.assembly->returning.empty());
    EXPECT_EQ(candidate.assembly->outdated, std::vector<Slot>{Slot(1)});
}

TEST(Assembly, refuses_an_old_image_of_a_member_that_should_be_in_sync) {
    Shelf shelf;
    shelf.create(Level::kRaid5, 3);
    const auto image = test::reserves_of(*shelf.drives[1].bytes);
    shelf.run({0, 1, 2}, {}, 4);
    test::restore_reserves(*shelf.drives[1].bytes, image);
    EXPECT_EQ(code_of(shelf.find({0, 1, 2})), ErrorCode::kSplitBrain);
}

// ---- several groups -----------------------------------------------------------------------------

TEST(Assembly, of_one_bad_group_hides_no_other) {
    Shelf shelf;
    const auto good = shelf.create(Level::kRaid5, 3, "good");       // 0 1 2
    const auto torn = shelf.create(Level::kRaid5, 3, "torn");       // 3 4 5
    const auto short_of = shelf.create(Level::kRaid6, 4, "short");  // 6 7 8 9
    const auto also_good = shelf.create(Level::kRaid1, 2, "also");  // 10 11
    for (const std::size_t drive : {3u, 4u}) {
        io::ram_bytes(*shelf.drives[drive].bytes)[format::kSuperblockOffset + 600] ^= std::byte{1};
        const auto tail = format::superblock_copy_offset(test::kDriveBytes);
        io::ram_bytes(*shelf.drives[drive].bytes)[tail + 600] ^= std::byte{1};
    }
    const auto scan = shelf.scan({0, 1, 2, 3, 4, 5, 6, 10, 11});
    for (const std::size_t index : {3u, 4u}) {
        EXPECT_FALSE(scan[index].superblock.has_value());
        ASSERT_TRUE(scan[index].problem.has_value());
        EXPECT_EQ(scan[index].problem->code, ErrorCode::kBadSuperblock);
        EXPECT_NE(scan[index].problem->message.find("S" + std::to_string(index)),
                  std::string::npos);
    }
    const auto candidates = assemble(scan, {});
    ASSERT_EQ(candidates.size(), 4u);
    EXPECT_TRUE(
        std::is_sorted(candidates.begin(), candidates.end(),
                       [](const Candidate& a, const Candidate& b) { return a.group < b.group; }));
    for (const Candidate& candidate : candidates) {
        const bool is_good = candidate.group == good.uuid || candidate.group == also_good.uuid;
        EXPECT_EQ(candidate.assembly.has_value(), is_good) << candidate.name;
        EXPECT_NE(candidate.assembly.has_value(), candidate.problem.has_value());
        EXPECT_EQ(code_of(candidate) == ErrorCode::kIncomplete, !is_good);
    }
}

TEST(Assembly, tells_groups_of_one_name_apart) {
    Shelf shelf;
    const auto older = shelf.create(Level::kRaid1, 2, "data");
    const auto younger = shelf.create(Level::kRaid1, 2, "data");
    const auto candidates = assemble(shelf.scan_all(), {});
    ASSERT_EQ(candidates.size(), 2u);
    for (const Candidate& candidate : candidates) {
        const bool is_older = candidate.group == older.uuid;
        EXPECT_EQ(candidate.name,
                  is_older ? "data" : "data-" + younger.uuid.to_text().substr(0, 8));
        EXPECT_EQ(candidate.assembly->record.name, "data");
    }
    // One that runs keeps the name that it has, whichever is older.
    AssemblyOptions options;
    options.taken_names = {{"data", younger.uuid}};
    for (const Candidate& candidate : assemble(shelf.scan_all(), options)) {
        const bool runs = candidate.group == younger.uuid;
        EXPECT_EQ(candidate.name, runs ? "data" : "data-" + older.uuid.to_text().substr(0, 8));
    }
    options.taken_names = {{"data", Uuid()}, {"other", older.uuid}};
    for (const Candidate& candidate : assemble(shelf.scan_all(), options)) {
        EXPECT_EQ(candidate.name, "data-" + candidate.group.to_text().substr(0, 8));
    }
}

TEST(Assembly, starts_groups_whatever_their_stored_name_is) {
    for (const std::string& name :
         {std::string("a b"), std::string("a\tb\n"), std::string("../x"), std::string("-x"),
          std::string("$(id)"), std::string(), std::string("\xff\xfe"), std::string("a\0b", 3),
          std::string(limits::kGroupNameBytesMax, 'x')}) {
        Shelf shelf;
        shelf.create(Level::kRaid1, 2, name);
        const Candidate candidate = shelf.find({0, 1});
        ASSERT_TRUE(candidate.assembly.has_value());
        EXPECT_EQ(candidate.name, name);
    }
}

TEST(Assembly, offers_destroyed_groups_only_when_asked) {
    Shelf shelf;
    auto record = shelf.create(Level::kRaid5, 3);
    record.destroyed = true;
    ASSERT_TRUE(shelf.store.commit(record, shelf.faces(record, {0, 1, 2})).ok());
    EXPECT_TRUE(assemble(shelf.scan_all(), {}).empty());
    const Candidate candidate = shelf.find({0, 1, 2}, {.destroyed = true});
    ASSERT_TRUE(candidate.assembly.has_value());
    EXPECT_FALSE(candidate.assembly->record.destroyed);
}

TEST(DirtyStart, is_refused_to_degraded_parity_groups_only) {
    const std::vector<std::uint64_t> dirty = {0, 4};
    const std::vector<std::uint64_t> none = {0, 0};
    for (const Level level : {Level::kRaid5, Level::kRaid6, Level::kRaid1, Level::kRaid10}) {
        Shelf shelf;
        shelf.create(level, 5);
        const bool has_parity = level == Level::kRaid5 || level == Level::kRaid6;
        Candidate whole = shelf.find({0, 1, 2, 3, 4});
        EXPECT_TRUE(check_dirty_start(*whole.assembly, dirty, {}).ok());
        Candidate degraded = shelf.find({0, 1, 2, 4});
        EXPECT_TRUE(check_dirty_start(*degraded.assembly, none, {}).ok());
        EXPECT_TRUE(check_dirty_start(*degraded.assembly, dirty, {.force = true}).ok());
        const Status status = check_dirty_start(*degraded.assembly, dirty, {});
        ASSERT_EQ(status.ok(), !has_parity);
        if (has_parity) {
            EXPECT_EQ(status.error().code, ErrorCode::kDirtyDegraded);
            EXPECT_NE(status.error().message.find("S3"), std::string::npos);
        }
        degraded.assembly->record.clean = true;
        EXPECT_TRUE(check_dirty_start(*degraded.assembly, dirty, {}).ok());
    }
}

}  // namespace
}  // namespace warpraid::meta
