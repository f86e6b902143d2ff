// One group in this process: drives, loop, buffers, coder, bitmap and the engine, as the daemon
// puts them together, without control plane. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "array/engine.h"
#include "engine/drive_set.h"
#include "geometry/layout.h"
#include "intent/bitmap.h"
#include "parity/coder.h"

namespace warpraid::bench {

struct GroupChoice {
    geometry::Level level = geometry::Level::kRaid5;
    std::uint32_t copies = 2;  // RAID 10
    std::uint32_t chunk_bytes = 0;
    std::string parity = "cpu";  // "cpu" or "reference"
    /// For the load's buffers, besides the engine's own.
    std::uint64_t load_buffer_bytes = 0;
    bool with_sockets = false;  // the loop serves sockets too
};

class Rig final : public array::Listener, public intent::Listener {
  public:
    static Result<std::unique_ptr<Rig>> make(const Clock& clock, DriveSet& drives,
                                             const GroupChoice& choice);
    ~Rig() override;
    Rig(const Rig&) = delete;
    Rig& operator=(const Rig&) = delete;

    array::Engine& engine() { return *engine_; }
    io::BufferArena& arena() { return *arena_; }
    io::Reactor& reactor() { return *reactor_; }
    const geometry::Layout& layout() const { return engine_->layout(); }
    std::string_view coder_name() const { return coder_->name(); }
    /// One turn of the loop; sleeps only when there is nothing to do. After an error of a drive the
    /// group fails, so that everything ends.
    void turn();
    /// Turns until nothing is in flight.
    void settle();
    /// Takes members out, as if they had failed. kInvalidArgument when the group would not survive.
    Status fail(const std::vector<std::uint32_t>& slots);
    /// Errors that drives reported; a measurement with any is worth nothing.
    std::uint64_t faults() const { return faults_; }

    void member_fault(Slot slot, array::FaultKind kind, int error, std::uint64_t offset) override;
    void bitmap_write_failed(Slot slot, int error) override;

  private:
    static constexpr std::uint64_t kSleepNsMax = 1'000'000;
    Rig() = default;

    std::unique_ptr<io::BufferArena> arena_;
    std::unique_ptr<io::Reactor> reactor_;
    std::vector<std::unique_ptr<io::Drive>> drives_;
    std::unique_ptr<parity::Coder> coder_;
    std::unique_ptr<intent::Bitmap> bitmap_;
    std::unique_ptr<array::Engine> engine_;
    array::View view_;
    std::uint64_t faults_ = 0;
};

}  // namespace warpraid::bench
