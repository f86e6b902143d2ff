// Where a service keeps what forced creates overwrite, in the folder "undo" of the state directory:
//   <group>.undo            the record, which says what is to happen
//   <group>.undo.copy       the same again: without it the images mean nothing
//   <group>-<member>.image  what a drive held, until it got it back
// Every change is durable when it returns. One thread at a time.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/uuid.h"
#include "control/undo_file.h"

namespace warpraid::control {

class UndoStore {
  public:
    explicit UndoStore(const std::string& state_directory);

    /// Takes in what files there are, and removes images that no record names: of those nothing was
    /// written to a drive yet, or nothing is wanted any more. So are files half written. kSystem.
    Status load();

    /// Nothing when nothing is kept for the group. Of a record of which neither copy can be read it
    /// is kKept: nothing is done with that by itself.
    std::optional<UndoState> state(const Uuid& group) const;
    std::vector<Uuid> groups() const;
    std::vector<Uuid> groups_in(UndoState state) const;
    /// There is one. kInvalidArgument when its files are damaged; other codes when they could not
    /// be read.
    Result<UndoRecord> record(const Uuid& group) const;
    /// Whether there is a record that can be read and the image of every drive, which is not read.
    Status check(const Uuid& group) const;
    /// Whether the drive has not got back yet what it held.
    bool is_waiting(const Uuid& group, const Uuid& member) const;
    /// kInvalidArgument when the file is damaged; kNotFound when somebody took it away.
    Result<UndoImage> read(const Uuid& group, const UndoDrive& drive) const;

    /// A new record, in the state kRestoring; the images are in the order of its drives. When it
    /// fails nothing of it is left.
    Status keep(const UndoRecord& record, std::span<const UndoImage> images);
    /// The record says so from now on, and is found under that name.
    Status change(const Uuid& group, UndoState state, const std::string& name);
    /// The drive got back what it held. Whatever it returns, it is waiting no longer if the file is
    /// gone.
    Status remove_image(const Uuid& group, const Uuid& member);
    /// Forgets all that is kept for the group. A failure leaves it, or a part of it.
    Status remove(const Uuid& group);

  private:
    struct Entry {
        Result<UndoRecord> record;
        std::set<Uuid> images;  // by member
    };
    const Entry& entry_of(const Uuid& group) const;
    /// Of its two copies.
    std::array<std::string, 2> record_paths(const Uuid& group) const;
    std::string image_path(const Uuid& group, const Uuid& member) const;
    Result<UndoRecord> read_record(const Uuid& group) const;

    std::string directory_;
    std::map<Uuid, Entry> entries_;
};

}  // namespace warpraid::control
