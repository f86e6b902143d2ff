#include <algorithm>

#include "format/signatures.h"
#include "meta/assembly.h"
#include "meta/superblock_io.h"

namespace warpraid::meta {
namespace {

using Copies = Result<format::Superblock>;

bool is_of_newer_program(const Copies& copy) {
    return !copy.ok() && (copy.error().code == ErrorCode::kUnsupportedVersion ||
                          copy.error().code == ErrorCode::kUnsupportedLayout);
}

bool is_absent(const Copies& copy) {
    return !copy.ok() && copy.error().code == ErrorCode::kNoSuperblock;
}

/// Whether the second copy says more than the first. Writing goes from first to second, so that is
/// so only when a write of the first was lost.
bool is_newer(const format::Superblock& second, const format::Superblock& first) {
    const auto* newer = std::get_if<format::GroupRecord>(&second.content);
    const auto* older = std::get_if<format::GroupRecord>(&first.content);
    return newer != nullptr && older != nullptr && newer->uuid == older->uuid &&
           second.drive == first.drive && newer->generation > older->generation;
}

bool is_same(const format::Superblock& a, const format::Superblock& b) {
    return a.drive == b.drive && a.content.index() == b.content.index() &&
           commit_id_of(a) == commit_id_of(b);
}

Result<std::vector<format::Signature>> read_signatures(io::BlockingDrive& drive) {
    const std::uint64_t size = drive.limits().size_bytes;
    const std::uint64_t edge = std::min<std::uint64_t>(size, format::kEdgeBytes);
    std::vector<std::byte> head(edge);
    std::vector<std::byte> tail(edge);
    WARPRAID_TRY(drive.read(0, head));
    WARPRAID_TRY(drive.read(size - edge, tail));
    return format::find_signatures({head, tail, size});
}

/// Whether something with a signature took the place of the first copy.
std::optional<Error> find_intruder(io::BlockingDrive& drive) {
    const auto foreign = foreign_signatures(drive);
    if (!foreign.ok() || foreign->empty()) return std::nullopt;
    return Error{ErrorCode::kHasSignature,
                 describe(drive.identity()) +
                     " was a member or spare, but holds another thing now: " + foreign->front() +
                     "; clear the drive before using it again"};
}

void choose(FoundDrive& found, Copies first, Copies second) {
    if (first.ok() && second.ok()) {
        const bool second_wins = is_newer(*second, *first);
        found.damaged_copy = !is_same(*first, *second);
        found.superblock = second_wins ? std::move(second).value() : std::move(first).value();
        return;
    }
    found.damaged_copy = true;
    if (first.ok()) {
        found.superblock = std::move(first).value();
    } else if (is_of_newer_program(first) || (!second.ok() && !is_absent(first))) {
        found.problem = std::move(first).error();
    } else if (second.ok()) {
        found.superblock = std::move(second).value();
    } else if (!is_absent(second)) {
        found.problem = std::move(second).error();
    }
    if (!found.superblock) found.damaged_copy = false;
}

}  // namespace

FoundDrive examine(io::BlockingDrive& drive) {
    FoundDrive found;
    found.identity = drive.identity();
    found.limits = drive.limits();
    auto first = read_copy(drive, Copy::kFirst);
    auto second = read_copy(drive, Copy::kSecond);
    const bool overwritten = is_absent(first) && !is_absent(second);
    choose(found, std::move(first), std::move(second));
    if (overwritten) {
        if (auto intruder = find_intruder(drive)) {
            found.superblock.reset();
            found.problem = std::move(intruder);
            found.damaged_copy = false;
        }
    }
    // Failed reads and intruders name the drive already.
    const bool is_unnamed =
        found.problem && (found.problem->code == ErrorCode::kBadSuperblock ||
                          found.problem->code == ErrorCode::kUnsupportedVersion ||
                          found.problem->code == ErrorCode::kUnsupportedLayout);
    if (is_unnamed) {
        found.problem->message = describe(found.identity) + ": " + found.problem->message;
        if (found.problem->code == ErrorCode::kBadSuperblock) {
            found.problem->message +=
                ", and the other copy is no better: put the drive into its slot again with "
                "'replace drive GROUP:SLOT " +
                found.identity.serial + " --force', or take it away";
        }
    }
    return found;
}

Result<std::vector<std::string>> foreign_signatures(io::BlockingDrive& drive) {
    WARPRAID_TRY_ASSIGN(const std::vector<format::Signature> signatures, read_signatures(drive));
    std::vector<std::string> texts;
    for (const format::Signature& signature : signatures) {
        if (!signature.ours) texts.push_back(signature.text);
    }
    return texts;
}

}  // namespace warpraid::meta
