// Looking at drives without changing a byte of them: identity, superblock, foreign signatures.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/md_protective.h"
#include "io/drive.h"
#include "meta/assembly.h"

namespace warpraid::control {

/// One drive as a scan saw it.
struct ScanEntry {
    meta::FoundDrive drive;
    /// What lies on it that is not ours ("ext4 file system"), or why it cannot be used.
    std::string finding;
    bool has_signature = false;
    /// What the protective MD superblock says, which is there before the first superblock is.
    std::optional<format::ProtectiveMark> mark;
};

/// The same for every path of one drive, and different for different drives.
std::string identity_key(const io::DriveIdentity& identity);
std::string identity_key(const std::string& wwid, const std::string& serial,
                         const std::string& path);

/// "serial (path)", for messages.
std::string drive_text(const io::DriveIdentity& identity);

/// Of the group that the drive is a member of; null when it is of none.
const format::GroupRecord* record_of(const meta::FoundDrive& drive);

/// What is on an opened drive.
ScanEntry look_at(io::BlockingDrive& drive);

/// Looks at each drive once, whatever aliases its path has. Those in `held` are in use here and
/// reported with identity and limits only: their owner knows better. Paths that cannot be opened
/// are left out.
std::vector<ScanEntry> scan(io::DriveProvider& provider, std::span<const std::string> paths,
                            std::span<io::BlockingDrive* const> held);

}  // namespace warpraid::control
