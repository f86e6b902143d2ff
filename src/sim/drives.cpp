#include "sim/drives.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/assert.h"

namespace warpraid::sim {

namespace {

using io::Command;
using io::Opcode;

io::DriveLimits limits_of(const DriveState& state) {
    io::DriveLimits limits;
    limits.size_bytes = state.medium.size_bytes();
    limits.logical_block_bytes = state.medium.block_bytes();
    limits.physical_block_bytes = state.medium.block_bytes();
    return limits;
}

class SimBlockingDrive final : public io::BlockingDrive {
  public:
    SimBlockingDrive(std::shared_ptr<DriveState> state, std::string path, bool exclusive,
                     const Drives& drives)
        : state_(std::move(state)),
          identity_{std::move(path), state_->serial, "sim", ""},
          limits_(limits_of(*state_)),
          exclusive_(exclusive),
          drives_(drives) {}
    ~SimBlockingDrive() override {
        if (exclusive_) state_->held = false;
    }

    const io::DriveIdentity& identity() const override { return identity_; }
    const io::DriveLimits& limits() const override { return limits_; }
    Status read(std::uint64_t offset, std::span<std::byte> to) override {
        WARPRAID_TRY(probe());
        if (state_->read_errors > 0) {
            --state_->read_errors;
            return problem(ErrorCode::kIo, "cannot read");
        }
        state_->medium.read(offset, to);
        return success();
    }
    Status write(std::uint64_t offset, std::span<const std::byte> from) override {
        WARPRAID_ASSERT(exclusive_);
        WARPRAID_TRY(probe());
        if (state_->fails_writes || drives_.frozen())
            return problem(ErrorCode::kIo, "cannot write");
        state_->medium.write(offset, from);
        return success();
    }
    Status flush() override {
        WARPRAID_TRY(probe());
        if (state_->fails_flushes || drives_.frozen())
            return problem(ErrorCode::kIo, "cannot flush");
        state_->medium.settle_blocks(state_->medium.cached_blocks());
        return success();
    }
    Status probe() override {
        if (!state_->gone) return success();
        return problem(ErrorCode::kDriveMissing, "is gone");
    }

    const std::shared_ptr<DriveState>& state() const { return state_; }

  private:
    Error problem(ErrorCode code, const char* what) const {
        return {code, "drive " + identity_.serial + " (" + identity_.path + "): " + what};
    }

    std::shared_ptr<DriveState> state_;
    io::DriveIdentity identity_;
    io::DriveLimits limits_;
    bool exclusive_;
    const Drives& drives_;
};

/// A command changes the medium's cache when it is sent, which a power cut may take back, and is
/// answered some time later; reads see what is there when they are answered.
class SimDrive final : public io::Drive {
  public:
    SimDrive(std::shared_ptr<DriveState> state, io::Reactor& reactor, Time& time,
             SeededRandom& random, const Drives& drives)
        : state_(std::move(state)),
          limits_(limits_of(*state_)),
          reactor_(reactor),
          time_(time),
          random_(random),
          drives_(drives) {}
    ~SimDrive() override { WARPRAID_ASSERT(in_flight_ == 0); }

    const io::DriveLimits& limits() const override { return limits_; }
    std::uint32_t in_flight() const override { return in_flight_; }
    void note_completed(Command&) override { --in_flight_; }

    void submit(Command& command) override {
        command.drive = this;
        command.error = 0;
        ++in_flight_;
        ++state_->commands;
        const int error = fate_of(command);
        std::vector<std::uint64_t> flushed;
        if (error == 0) flushed = start(command);
        time_.after(1 + random_.below(2 * state_->latency_ns),
                    [this, &command, error, flushed = std::move(flushed)] {
                        end(command, error, flushed);
                    });
    }

  private:
    int fate_of(const Command& command) {
        if (state_->gone) return ENODEV;
        if (command.opcode == Opcode::kRead) {
            if (state_->read_errors == 0) return 0;
            --state_->read_errors;
            state_->failed_read_ns = time_.monotonic_ns();
            return EIO;
        }
        if (drives_.frozen()) return ENODEV;
        const bool fails =
            command.opcode == Opcode::kFlush ? state_->fails_flushes : state_->fails_writes;
        return fails ? EIO : 0;
    }
    /// What the flush, if it is one, owes when it has ended.
    std::vector<std::uint64_t> start(const Command& command) {
        Medium& medium = state_->medium;
        if (command.opcode == Opcode::kFlush) {
            ++flushes_in_flight_;
            return medium.cached_blocks();
        }
        if (command.opcode == Opcode::kRead) return {};
        // A flush that is under way owes what is overwritten now: the drive has written that out.
        if (flushes_in_flight_ > 0) medium.settle(command.offset, command.length_bytes);
        if (command.opcode != Opcode::kWrite) {
            medium.zero(command.offset, command.length_bytes);
            return {};
        }
        std::uint64_t at = command.offset;
        for (const iovec& segment : command.segments) {
            medium.write(at, {static_cast<const std::byte*>(segment.iov_base), segment.iov_len});
            at += segment.iov_len;
        }
        return {};
    }
    void end(Command& command, int error, std::span<const std::uint64_t> flushed) {
        if (command.opcode == Opcode::kFlush && error == 0) --flushes_in_flight_;
        // A drive that was pulled meanwhile does not answer, and one whose host stopped owes
        // nothing.
        if (error == 0 && state_->gone) error = ENODEV;
        if (error == 0 && !drives_.frozen()) finish(command, flushed);
        command.error = error;
        reactor_.completed_commands().push_back(command);
    }
    void finish(const Command& command, std::span<const std::uint64_t> flushed) {
        Medium& medium = state_->medium;
        if (command.opcode == Opcode::kFlush) {
            medium.settle_blocks(flushed);
        } else if (command.opcode == Opcode::kRead) {
            std::uint64_t at = command.offset;
            for (const iovec& segment : command.segments) {
                medium.read(at, {static_cast<std::byte*>(segment.iov_base), segment.iov_len});
                at += segment.iov_len;
            }
        } else if (command.fua) {
            medium.settle(command.offset, command.length_bytes);
        }
    }

    std::shared_ptr<DriveState> state_;
    io::DriveLimits limits_;
    io::Reactor& reactor_;
    Time& time_;
    SeededRandom& random_;
    const Drives& drives_;
    std::uint32_t in_flight_ = 0;
    std::uint32_t flushes_in_flight_ = 0;
};

}  // namespace

DriveState& Drives::add(const std::string& serial, std::uint64_t size_bytes,
                        std::uint32_t block_bytes) {
    const auto [place, is_new] = drives_.insert(
        {path_of(serial), std::make_shared<DriveState>(serial, size_bytes, block_bytes)});
    WARPRAID_ASSERT(is_new);
    return *place->second;
}

void Drives::cut_power() {
    for (auto& [path, drive] : drives_) drive->medium.cut_power(random_);
}

std::uint64_t Drives::digest() const {
    std::uint64_t sum = drives_.size();
    for (const auto& [path, drive] : drives_) {
        sum = sum * 0x9e37'79b9'7f4a'7c15 + drive->medium.digest();
    }
    return sum;
}

Result<std::unique_ptr<io::BlockingDrive>> Drives::open(const std::string& path,
                                                        io::OpenMode mode) {
    const auto found = drives_.find(path);
    if (found == drives_.end() || found->second->gone) {
        return Error{ErrorCode::kDriveMissing, "no drive at " + path};
    }
    DriveState& drive = *found->second;
    const bool exclusive = mode == io::OpenMode::kExclusive;
    if (exclusive && std::exchange(drive.held, true)) {
        return Error{ErrorCode::kDriveBusy, "drive " + drive.serial + " is in use"};
    }
    return std::unique_ptr<io::BlockingDrive>(
        std::make_unique<SimBlockingDrive>(found->second, path, exclusive, *this));
}

Result<std::unique_ptr<io::Drive>> Drives::bind(io::BlockingDrive& drive, io::Reactor& reactor,
                                                std::uint64_t) {
    return std::unique_ptr<io::Drive>(std::make_unique<SimDrive>(
        dynamic_cast<SimBlockingDrive&>(drive).state(), reactor, time_, random_, *this));
}

bool Drives::share_storage(const io::BlockingDrive&, const io::BlockingDrive&) {
    return false;  // each has its own
}

std::vector<std::string> Drives::list(std::span<const std::string> patterns) {
    std::vector<std::string> paths;
    for (const auto& [path, drive] : drives_) {
        if (!patterns.empty() && !drive->gone) paths.push_back(path);
    }
    return paths;
}

}  // namespace warpraid::sim
