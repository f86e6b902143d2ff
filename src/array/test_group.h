// For tests: one group over RAM drives on a reactor without a kernel, with a stand-in for the
// control plane that takes faulty members out, and helpers to lose, replace and return drives.
#pragma once

#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "array/engine.h"
#include "base/base_test_support.h"
#include "geometry/layout.h"
#include "intent/bitmap.h"
#include "io/arena.h"
#include "io/manual_reactor.h"
#include "io/ram.h"
#include "parity/coder.h"

namespace warpraid::array {

/// Memory that a request may point to.
struct AlignedBuffer {
    explicit AlignedBuffer(std::size_t size)
        : data(static_cast<std::byte*>(std::aligned_alloc(4096, round_up(size, 4096)))) {}
    ~AlignedBuffer() { std::free(data); }
    AlignedBuffer(const AlignedBuffer&) = delete;
    AlignedBuffer& operator=(const AlignedBuffer&) = delete;
    std::byte* data;
};

class TestGroup final : public Listener, public intent::Listener {
  public:
    struct DriveFaults {
        bool fail_reads = false;
        bool fail_writes = false;
        bool gone = false;
        std::int64_t fail_write_after = -1;  // writes still let through before one fails
        std::uint64_t bad_begin = 0;         // drive offsets whose reads fail
        std::uint64_t bad_end = 0;
        bool fail_flushes = false;
        bool hold_flushes = false;  // they wait until this is false again
    };

    /// When the parity coder has done a batch: in submit(), or some turns later and out of order.
    enum class Parity : std::uint8_t { kAtOnce, kLater };

    /// `dirty`: the regions that an unclean stop left behind, as in intent::Bitmap's constructor.
    TestGroup(const geometry::Shape& shape, std::uint64_t region_stripes,
              std::span<const std::uint64_t> dirty = {}, Parity parity = Parity::kAtOnce);
    ~TestGroup() override;

    Engine& engine() { return *engine_; }
    intent::Bitmap& bitmap() { return *bitmap_; }
    const geometry::Layout& layout() const { return layout_; }
    io::ManualReactor& reactor() { return reactor_; }
    DriveFaults& faults(std::uint32_t slot) { return *faults_[slot]; }
    std::byte* bytes(std::uint32_t slot) { return io::ram_bytes(*stores_[slot]); }
    bool failed() const { return view_.failed; }
    std::uint32_t missing_mask() const;
    /// Bytes of the member's data area that a power cut could lose: written, and neither with FUA
    /// nor flushed since.
    std::uint64_t unflushed_bytes(std::uint32_t slot) const;
    bool is_flushed(std::uint32_t slot, std::uint64_t data_offset, std::uint64_t bytes) const;
    std::uint64_t faults_seen = 0;

    /// One turn of the loop, then the stand-in control plane.
    void turn();
    void run_until(const std::function<bool()>& condition);
    /// Submits and waits; the request's errno.
    int execute(block::Operation operation, std::uint64_t offset, std::uint64_t length,
                std::byte* data, bool fua = false);
    /// Takes a member out as an operator would.
    void lose(std::uint32_t slot);
    /// A member was lost that no level can spare: it stays in the view, and nobody takes one out
    /// any more.
    void fail_group();
    /// A new drive full of junk in the slot, then a rebuild of everything stale.
    void replace(std::uint32_t slot);
    /// The drive that was lost comes back with its old content.
    void give_back(std::uint32_t slot);
    /// Runs the rebuild, with `meanwhile` called every turn. False when it could not finish.
    bool rebuild(const std::function<void()>& meanwhile = {});
    void resync();
    /// Hands the engine the view anew, as after any commit of the record.
    void adopt();
    std::uint64_t count_mismatches();
    /// Drives that left and are not destroyed yet. They are, as the control plane does it, as soon
    /// as they have nothing in flight and the engine does not refer to them.
    std::size_t retired() const { return old_drives_.size(); }
    /// How often a drive with nothing in flight was kept because the engine refers to it.
    std::uint64_t kept_for_engine = 0;

    void member_fault(Slot slot, FaultKind kind, int error, std::uint64_t drive_offset) override;
    void bitmap_write_failed(Slot slot, int error) override;

    static constexpr std::uint64_t kDataOffset = 1024 * 1024;

  private:
    class CachedDrive;
    void install_drive(std::uint32_t slot);
    void retire(std::uint32_t slot);
    void take_out_faulty();
    void destroy_retired();
    bool run_tasks(StripeTask::Kind kind, Stripe first, Stripe end,
                   const std::function<void()>& meanwhile, std::uint64_t* mismatches);

    ManualClock clock_;
    io::ManualReactor reactor_;
    geometry::Layout layout_;
    std::uint64_t region_stripes_;
    std::unique_ptr<io::BufferArena> arena_;
    std::unique_ptr<parity::Coder> coder_;
    std::vector<std::shared_ptr<io::RamStore>> stores_;
    std::vector<std::unique_ptr<DriveFaults>> faults_;
    std::vector<std::unique_ptr<io::Drive>> drives_;
    std::vector<CachedDrive*> caches_;  // innermost of drives_, or of those that left
    std::vector<std::unique_ptr<io::Drive>> old_drives_;
    std::unique_ptr<intent::Bitmap> bitmap_;
    std::unique_ptr<Engine> engine_;
    View view_;
    std::uint32_t to_remove_ = 0;
    std::uint32_t drive_number_ = 0;
};

}  // namespace warpraid::array
