#include "engine/rig.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "parity/cpu/isal_coder.h"
#include "parity/reference.h"

namespace warpraid::bench {

namespace {

constexpr std::uint64_t kDataOffset = 2 * kMiB;
constexpr std::uint64_t kEngineBufferBytes = 256 * kMiB;
constexpr std::uint64_t kRegionDepthBytes = 8 * kMiB;

// Stripes of a write-intent region: a few MiB of every member, and never too many regions.
std::uint64_t region_stripes(const geometry::Layout& layout) {
    const std::uint64_t by_depth = kRegionDepthBytes / layout.stripe_depth_bytes();
    const std::uint64_t by_count = divide_up(layout.stripes(), limits::kRegionsMax);
    return std::max<std::uint64_t>({1, by_depth, by_count});
}

}  // namespace

Result<std::unique_ptr<Rig>> Rig::make(const Clock& clock, DriveSet& drives,
                                       const GroupChoice& choice) {
    if (drives.bytes() < limits::kDriveBytesMin) {
        return Error{ErrorCode::kMemberTooSmall,
                     fmt::format("a drive has {} bytes; at least {} are needed", drives.bytes(),
                                 limits::kDriveBytesMin)};
    }
    geometry::Shape shape;
    shape.level = choice.level;
    shape.members = drives.count();
    shape.copies = choice.level == geometry::Level::kRaid10 ? choice.copies : 1;
    shape.chunk_bytes = choice.chunk_bytes;
    shape.block_bytes = drives.block_bytes();
    shape.member_data_bytes =
        round_down(drives.bytes() - kDataOffset - limits::kTailReserveBytes, choice.chunk_bytes);
    WARPRAID_TRY_ASSIGN(const geometry::Layout layout, geometry::Layout::make(shape));

    std::unique_ptr<Rig> rig(new Rig());
    WARPRAID_TRY_ASSIGN(rig->arena_, io::BufferArena::make(static_cast<std::size_t>(
                                         kEngineBufferBytes + choice.load_buffer_bytes)));
    WARPRAID_TRY_ASSIGN(rig->reactor_,
                        drives.make_reactor(clock, *rig->arena_, choice.with_sockets));
    WARPRAID_TRY_ASSIGN(rig->drives_, drives.bind(*rig->reactor_));
    rig->coder_ =
        choice.parity == "reference" ? parity::make_reference_coder() : parity::make_isal_coder();
    intent::Options options;
    options.group.bytes[0] = 1;
    options.regions =
        static_cast<std::uint32_t>(divide_up(layout.stripes(), region_stripes(layout)));
    rig->bitmap_ =
        std::make_unique<intent::Bitmap>(options, format::BitmapContent{}, *rig->reactor_, *rig);
    array::EngineOptions engine_options{layout, region_stripes(layout)};
    rig->engine_ = std::make_unique<array::Engine>(engine_options, *rig->reactor_, *rig->arena_,
                                                   *rig->coder_, *rig->bitmap_, *rig);
    for (std::uint32_t slot = 0; slot < shape.members; ++slot) {
        rig->view_.members[slot].access = array::Access::kFull;
        rig->view_.members[slot].drive = rig->drives_[slot].get();
        rig->view_.members[slot].data_offset = kDataOffset;
    }
    rig->view_.version = 1;
    rig->engine_->adopt(rig->view_);
    rig->settle();
    return rig;
}

Rig::~Rig() {
    if (engine_ != nullptr) settle();
    engine_.reset();
    bitmap_.reset();
}

void Rig::turn() {
    reactor_->run_once(kSleepNsMax);
    if (faults_ == 0 || view_.failed) return;
    view_.failed = true;
    ++view_.version;
    engine_->adopt(view_);
}

void Rig::settle() {
    while (!engine_->idle() || !bitmap_->idle()) turn();
}

Status Rig::fail(const std::vector<std::uint32_t>& slots) {
    std::uint32_t missing = 0;
    for (const std::uint32_t slot : slots) {
        if (slot >= layout().members()) {
            return Error{
                ErrorCode::kInvalidArgument,
                fmt::format("there is no member {}; the group has {}", slot, layout().members())};
        }
        missing |= 1u << slot;
        view_.members[slot] = array::MemberView{};
    }
    if (!layout().survives(missing)) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} does not survive the loss of these {} members",
                                 geometry::to_text(layout().level()), slots.size())};
    }
    bitmap_->hold_clearing(true);
    ++view_.version;
    engine_->adopt(view_);
    settle();
    return success();
}

void Rig::member_fault(Slot, array::FaultKind, int, std::uint64_t) {
    ++faults_;
}

void Rig::bitmap_write_failed(Slot, int) {
    ++faults_;
}

}  // namespace warpraid::bench
