// Where a shard leaves what went wrong with members, for the control plane to pick up. Bounded by
// construction: one entry a slot, so a storm of faults costs no memory and blocks nobody.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "array/engine.h"
#include "base/limits.h"
#include "base/units.h"
#include "intent/bitmap.h"

namespace warpraid::control {

/// What is known against one member since the last look.
struct MemberFaults {
    std::uint64_t read_errors = 0;
    std::uint64_t write_errors = 0;
    /// The gravest kind seen besides single read errors: the member must leave.
    std::optional<array::FaultKind> fatal;
    /// A bitmap page could not be written; the rest of the drive may be well.
    bool bitmap_unwritable = false;
    int error = 0;
    std::uint64_t drive_offset = 0;
    /// It answers no more, whatever else it did.
    bool silent() const {
        return fatal == array::FaultKind::kGone || fatal == array::FaultKind::kTimeout;
    }
    bool any() const {
        return read_errors != 0 || write_errors != 0 || bitmap_unwritable || fatal.has_value();
    }
};

class FaultBox final : public array::Listener, public intent::Listener {
  public:
    using Faults = std::array<MemberFaults, limits::kMembersMax>;

    /// `wake` is called on the shard after an entry was made; it must not block.
    explicit FaultBox(std::function<void()> wake) : wake_(std::move(wake)) {}

    // On the shard.
    void member_fault(Slot slot, array::FaultKind kind, int error,
                      std::uint64_t drive_offset) override {
        {
            const std::lock_guard lock(mutex_);
            MemberFaults& faults = note(slot, error, drive_offset);
            if (kind == array::FaultKind::kReadError) {
                ++faults.read_errors;
            } else {
                if (kind == array::FaultKind::kWriteError) ++faults.write_errors;
                if (!faults.fatal || gravity(kind) > gravity(*faults.fatal)) faults.fatal = kind;
            }
        }
        wake_();
    }
    void bitmap_write_failed(Slot slot, int error) override {
        if (error == ENODEV) return member_fault(slot, array::FaultKind::kGone, error, 0);
        if (error == ETIMEDOUT) return member_fault(slot, array::FaultKind::kTimeout, error, 0);
        {
            const std::lock_guard lock(mutex_);
            MemberFaults& faults = note(slot, error, 0);
            ++faults.write_errors;
            faults.bitmap_unwritable = true;
        }
        wake_();
    }

    // Any thread.
    bool any() const {
        const std::lock_guard lock(mutex_);
        return any_;
    }
    Faults take() {
        const std::lock_guard lock(mutex_);
        any_ = false;
        return std::exchange(faults_, Faults{});
    }
    /// A slot's past is no longer its present drive's.
    void forget(Slot slot) {
        const std::lock_guard lock(mutex_);
        faults_[slot.get()] = MemberFaults{};
    }

  private:
    // A write error may leave the member in place as a last copy; one that answers no more cannot.
    static int gravity(array::FaultKind kind) {
        switch (kind) {
            case array::FaultKind::kReadError:
                return 0;
            case array::FaultKind::kWriteError:
                return 1;
            case array::FaultKind::kTimeout:
                return 2;
            case array::FaultKind::kGone:
                return 3;
        }
        return 0;
    }
    // With the lock held.
    MemberFaults& note(Slot slot, int error, std::uint64_t drive_offset) {
        MemberFaults& faults = faults_[slot.get()];
        faults.error = error;
        faults.drive_offset = drive_offset;
        any_ = true;
        return faults;
    }

    std::function<void()> wake_;
    mutable std::mutex mutex_;
    Faults faults_;
    bool any_ = false;
};

}  // namespace warpraid::control
