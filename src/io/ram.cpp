#include "io/ram.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/units.h"
#include "io/reactor.h"

namespace warpraid::io {

class RamStore {
  public:
    RamStore(const std::string& serial, std::uint64_t size_bytes, std::uint32_t block_bytes)
        : identity_{"ram:" + serial, serial, "ram", ""} {
        WARPRAID_ASSERT(size_bytes > 0 && size_bytes % block_bytes == 0);
        limits_.size_bytes = size_bytes;
        limits_.logical_block_bytes = block_bytes;
        limits_.physical_block_bytes = block_bytes;
        limits_.rotational_cache = false;
        void* memory = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        WARPRAID_ASSERT(memory != MAP_FAILED);
        bytes_ = static_cast<std::byte*>(memory);
    }
    ~RamStore() { munmap(bytes_, limits_.size_bytes); }
    RamStore(const RamStore&) = delete;
    RamStore& operator=(const RamStore&) = delete;

    const DriveIdentity& identity() const { return identity_; }
    const DriveLimits& limits() const { return limits_; }
    std::byte* bytes() const { return bytes_; }

    bool holds(std::uint64_t offset, std::uint64_t length) const {
        const std::uint64_t block = limits_.logical_block_bytes;
        return offset <= limits_.size_bytes && length <= limits_.size_bytes - offset &&
               offset % block == 0 && length % block == 0;
    }
    /// Large ranges give their pages back to the system instead of being written.
    void zero(std::uint64_t offset, std::uint64_t length) {
        constexpr std::uint64_t kPage = 4096;
        constexpr std::uint64_t kWorthASystemCall = 256 * kKiB;
        const std::uint64_t first = round_up(offset, kPage);
        const std::uint64_t last = round_down(offset + length, kPage);
        if (length < kWorthASystemCall ||
            madvise(bytes_ + first, last - first, MADV_DONTNEED) != 0) {
            std::memset(bytes_ + offset, 0, length);
            return;
        }
        std::memset(bytes_ + offset, 0, first - offset);
        std::memset(bytes_ + last, 0, offset + length - last);
    }

  private:
    DriveIdentity identity_;
    DriveLimits limits_;
    std::byte* bytes_ = nullptr;
};

namespace {

/// What all drives of this file share: they finish in submit() and count until the completion
/// phase.
class InstantDrive : public Drive {
  public:
    explicit InstantDrive(Reactor& reactor) : reactor_(reactor) {}
    ~InstantDrive() override { WARPRAID_ASSERT(in_flight_ == 0); }
    std::uint32_t in_flight() const override { return in_flight_; }
    void note_completed(Command& command) override {
        static_cast<void>(command);
        --in_flight_;
    }

  protected:
    void finish(Command& command, int error) {
        command.error = error;
        command.drive = this;
        ++in_flight_;
        reactor_.completed_commands().push_back(command);
    }

  private:
    Reactor& reactor_;
    std::uint32_t in_flight_ = 0;
};

class RamDrive final : public InstantDrive {
  public:
    RamDrive(std::shared_ptr<RamStore> store, Reactor& reactor)
        : InstantDrive(reactor), store_(std::move(store)) {}

    const DriveLimits& limits() const override { return store_->limits(); }
    void submit(Command& command) override { finish(command, execute(command)); }

  private:
    int execute(Command& command) {
        if (command.opcode == Opcode::kFlush) return 0;
        if (!store_->holds(command.offset, command.length_bytes)) return EINVAL;
        switch (command.opcode) {
            case Opcode::kRead:
                return copy(command, true);
            case Opcode::kWrite:
                return copy(command, false);
            case Opcode::kDiscard:
            case Opcode::kWriteZeroes:
                store_->zero(command.offset, command.length_bytes);
                return 0;
            case Opcode::kFlush:
                break;
        }
        return EINVAL;
    }
    int copy(const Command& command, bool reading) {
        std::byte* at = store_->bytes() + command.offset;
        std::uint64_t left = command.length_bytes;
        for (const iovec& segment : command.segments) {
            WARPRAID_ASSERT(segment.iov_len <= left);
            if (reading) {
                std::memcpy(segment.iov_base, at, segment.iov_len);
            } else {
                std::memcpy(at, segment.iov_base, segment.iov_len);
            }
            at += segment.iov_len;
            left -= segment.iov_len;
        }
        WARPRAID_ASSERT(left == 0);
        return 0;
    }

    std::shared_ptr<RamStore> store_;
};

class NullDrive final : public InstantDrive {
  public:
    NullDrive(const DriveLimits& limits, Reactor& reactor)
        : InstantDrive(reactor), limits_(limits) {}
    const DriveLimits& limits() const override { return limits_; }
    void submit(Command& command) override { finish(command, 0); }

  private:
    DriveLimits limits_;
};

class FaultyDrive final : public InstantDrive {
  public:
    FaultyDrive(std::unique_ptr<Drive> inner, Reactor& reactor, FaultFunction fault)
        : InstantDrive(reactor), inner_(std::move(inner)), fault_(std::move(fault)) {}

    const DriveLimits& limits() const override { return inner_->limits(); }
    std::uint32_t in_flight() const override {
        return InstantDrive::in_flight() + inner_->in_flight();
    }
    bool overdue() const override { return inner_->overdue(); }
    void submit(Command& command) override {
        const int error = fault_(command);
        if (error != 0) {
            finish(command, error);
        } else {
            inner_->submit(command);
        }
    }

  private:
    std::unique_ptr<Drive> inner_;
    FaultFunction fault_;
};

class RamBlockingDrive final : public BlockingDrive {
  public:
    explicit RamBlockingDrive(std::shared_ptr<RamStore> store) : store_(std::move(store)) {}

    const DriveIdentity& identity() const override { return store_->identity(); }
    const DriveLimits& limits() const override { return store_->limits(); }
    Status read(std::uint64_t offset, std::span<std::byte> to) override {
        WARPRAID_TRY(check(offset, to.size()));
        std::memcpy(to.data(), store_->bytes() + offset, to.size());
        return success();
    }
    Status write(std::uint64_t offset, std::span<const std::byte> from) override {
        WARPRAID_TRY(check(offset, from.size()));
        std::memcpy(store_->bytes() + offset, from.data(), from.size());
        return success();
    }
    Status flush() override { return success(); }
    Status probe() override { return success(); }

  private:
    Status check(std::uint64_t offset, std::uint64_t length) const {
        if (store_->holds(offset, length)) return success();
        return Error{ErrorCode::kInvalidArgument,
                     "drive " + store_->identity().serial + " of " +
                         std::to_string(store_->limits().size_bytes) + " bytes cannot access " +
                         std::to_string(length) + " bytes at " + std::to_string(offset)};
    }

    std::shared_ptr<RamStore> store_;
};

}  // namespace

std::shared_ptr<RamStore> make_ram_store(const std::string& serial, std::uint64_t size_bytes,
                                         std::uint32_t block_bytes) {
    return std::make_shared<RamStore>(serial, size_bytes, block_bytes);
}

std::byte* ram_bytes(RamStore& store) {
    return store.bytes();
}

std::unique_ptr<BlockingDrive> make_ram_blocking_drive(std::shared_ptr<RamStore> store) {
    return std::make_unique<RamBlockingDrive>(std::move(store));
}

std::unique_ptr<Drive> make_ram_drive(std::shared_ptr<RamStore> store, Reactor& reactor) {
    return std::make_unique<RamDrive>(std::move(store), reactor);
}

std::unique_ptr<Drive> make_null_drive(std::uint64_t size_bytes, std::uint32_t block_bytes,
                                       Reactor& reactor) {
    DriveLimits limits;
    limits.size_bytes = size_bytes;
    limits.logical_block_bytes = block_bytes;
    limits.physical_block_bytes = block_bytes;
    limits.rotational_cache = false;
    return std::make_unique<NullDrive>(limits, reactor);
}

std::unique_ptr<Drive> make_faulty_drive(std::unique_ptr<Drive> inner, Reactor& reactor,
                                         FaultFunction fault) {
    return std::make_unique<FaultyDrive>(std::move(inner), reactor, std::move(fault));
}

}  // namespace warpraid::io
