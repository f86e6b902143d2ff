// The drives that the operator registered, or that belong to groups running here: small stable
// numbers for hardware identities, wherever their paths point today. No I/O. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/scan.h"
#include "control/state_file.h"
#include "format/superblock.h"
#include "io/drive.h"

namespace warpraid::control {

struct RegisteredDrive {
    std::uint32_t id = 0;
    io::DriveIdentity identity;  // path: last seen at
    io::DriveLimits limits;      // size only, while it was never present
    bool present = false;
    /// Where it was before, the latest last: another drive may be there by now.
    std::vector<std::string> former_paths;
    /// As the last scan saw it; nothing while the drive is in use here.
    std::optional<format::Superblock> superblock;
    std::string finding;
    bool has_signature = false;

    std::string key() const { return identity_key(identity); }
    bool was_at(const std::string& path) const;
    /// `path` is forgotten again when it is the present one.
    void note_former_path(const std::string& path);
};

class Registry {
  public:
    explicit Registry(std::span<const SavedDrive> saved = {});

    /// The drive's entry, made when it is new. Fails with kLimitReached.
    Result<RegisteredDrive*> add(const io::DriveIdentity& identity, const io::DriveLimits& limits);
    void remove(std::uint32_t id) { drives_.erase(id); }

    RegisteredDrive* find_key(const std::string& key);
    /// By number, serial, wwid or path. Null when there is none; kInvalidArgument when several fit.
    Result<RegisteredDrive*> find(const std::string& name);
    /// Takes over what a whole scan saw; drives that it did not see are absent.
    void note_scan(std::span<const ScanEntry> entries);
    void note(const ScanEntry& entry);
    /// Whether a drive is absent.
    bool lacks_any() const;

    std::map<std::uint32_t, RegisteredDrive>& drives() { return drives_; }
    const std::map<std::uint32_t, RegisteredDrive>& drives() const { return drives_; }
    /// Serials of drives that are or were at `path` as far as was seen, but for that one.
    std::vector<std::string> others_at(const std::string& path, const std::string& serial) const;
    std::vector<std::string> paths() const;
    /// Where drives were, whoever is there by now.
    std::vector<std::string> former_paths() const;
    std::vector<SavedDrive> saved() const;

  private:
    std::map<std::uint32_t, RegisteredDrive> drives_;
};

}  // namespace warpraid::control
