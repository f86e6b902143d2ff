// Where a service keeps what forced creates overwrote: one file a group in the folder "undo" of the
// state directory. What is to happen with it is in the file's name, so that one rename changes it:
//   <uuid>.restoring  the drives are to get back what they held; so it starts, because a create
//                     that a crash cuts short is taken back, and so it ends when the operator
//                     undoes it
//   <uuid>.kept       the group is made: undo is possible for as long as it is held
// Every change is durable when it returns. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/uuid.h"
#include "control/undo_file.h"

namespace warpraid::control {

enum class UndoState : std::uint8_t { kRestoring, kKept };

class UndoStore {
  public:
    explicit UndoStore(const std::string& state_directory);

    /// Takes in what files there are. kSystem.
    Status load();
    /// Nothing when nothing is kept for the group.
    std::optional<UndoState> state(const Uuid& group) const;
    std::vector<Uuid> groups() const;
    std::vector<Uuid> groups_in(UndoState state) const;
    std::string path(const Uuid& group) const;

    /// A new record, in the state kRestoring. When it fails nothing of it is left.
    Status keep(const UndoRecord& record);
    Status change(const Uuid& group, UndoState state);
    /// Forgets what is kept.
    Status remove(const Uuid& group);
    /// kInvalidArgument when the file is damaged; other codes when it cannot be read now.
    Result<UndoRecord> read(const Uuid& group) const;

  private:
    std::string path(const Uuid& group, UndoState state) const;

    std::string directory_;
    std::map<Uuid, UndoState> states_;
};

}  // namespace warpraid::control
