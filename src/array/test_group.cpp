#include "array/test_group.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "base/random.h"
#include "parity/reference.h"

namespace warpraid::array {

namespace {

geometry::Layout layout_of(const geometry::Shape& shape) {
    Result<geometry::Layout> layout = geometry::Layout::make(shape);
    WARPRAID_ASSERT(layout.ok());
    return layout.value();
}

// Keeps the flushes it is given for as long as `hold` is true.
class HoldingDrive final : public io::Drive, public io::Poller {
  public:
    HoldingDrive(std::unique_ptr<io::Drive> inner, io::Reactor& reactor, const bool& hold)
        : inner_(std::move(inner)), reactor_(reactor), hold_(hold) {
        reactor_.add_poller(*this);
    }
    ~HoldingDrive() override { reactor_.remove_poller(*this); }
    void submit(io::Command& command) override {
        if (!hold_ || command.opcode != io::Opcode::kFlush) return inner_->submit(command);
        held_.push_back(&command);
    }
    const io::DriveLimits& limits() const override { return inner_->limits(); }
    std::uint32_t in_flight() const override {
        return inner_->in_flight() + static_cast<std::uint32_t>(held_.size());
    }
    bool poll(std::uint64_t) override {
        if (hold_ || held_.empty()) return false;
        for (io::Command* command : std::exchange(held_, {})) inner_->submit(*command);
        return true;
    }

  private:
    std::unique_ptr<io::Drive> inner_;
    io::Reactor& reactor_;
    const bool& hold_;
    std::vector<io::Command*> held_;
};

// Finishes each batch after a few polls, not in the order in which they came, as a GPU does.
class LateCoder final : public parity::Coder {
  public:
    std::string_view name() const override { return "late"; }
    void submit(parity::Batch& batch) override { waiting_.push_back({&batch, random_.below(6)}); }
    std::size_t poll() override {
        std::size_t done = 0;
        std::erase_if(waiting_, [&](Waiting& waiting) {
            if (waiting.polls_left-- > 0) return false;
            // Not before: until then nothing that the batch writes may be looked at.
            coder_->submit(*waiting.batch);
            WARPRAID_ASSERT(waiting.batch->done);
            ++done;
            return true;
        });
        return done;
    }

  private:
    struct Waiting {
        parity::Batch* batch;
        std::uint64_t polls_left;
    };
    std::unique_ptr<parity::Coder> coder_ = parity::make_reference_coder();
    SeededRandom random_{1};
    std::vector<Waiting> waiting_;
};

std::unique_ptr<parity::Coder> make_coder(TestGroup::Parity parity) {
    if (parity == TestGroup::Parity::kLater) return std::make_unique<LateCoder>();
    return parity::make_reference_coder();
}

}  // namespace

// Counts what a volatile write cache would hold. What a flush covers are the writes that were
// completed when it was submitted, and no others.
class TestGroup::CachedDrive final : public io::Drive {
  public:
    explicit CachedDrive(std::unique_ptr<io::Drive> inner)
        : inner_(std::move(inner)),
          written_(inner_->limits().size_bytes / inner_->limits().logical_block_bytes) {}
    const io::DriveLimits& limits() const override { return inner_->limits(); }
    std::uint32_t in_flight() const override { return inner_->in_flight(); }
    void submit(io::Command& command) override {
        if (command.opcode == io::Opcode::kFlush) flushes_[&command] = completed_;
        inner_->submit(command);
        // It completes in the reactor's next phase, which tells the drive that is named here.
        command.drive = this;
    }
    void note_completed(io::Command& command) override {
        inner_->note_completed(command);
        const bool is_flush = command.opcode == io::Opcode::kFlush;
        const std::uint64_t covered = is_flush ? flushes_.extract(&command).mapped() : 0;
        if (command.error != 0 || command.opcode == io::Opcode::kRead) return;
        if (is_flush) {
            for (std::uint64_t& number : written_) number = number <= covered ? 0 : number;
            return;
        }
        const std::uint32_t block = limits().logical_block_bytes;
        ++completed_;
        for (std::uint64_t at = command.offset; at < command.offset + command.length_bytes;
             at += block) {
            written_[at / block] = command.fua ? 0 : completed_;
        }
    }
    std::uint64_t unflushed_bytes(std::uint64_t offset, std::uint64_t bytes) const {
        const std::uint32_t block = limits().logical_block_bytes;
        std::uint64_t blocks = 0;
        for (std::uint64_t at = offset; at < offset + bytes; at += block) {
            if (written_[at / block] != 0) ++blocks;
        }
        return blocks * block;
    }

  private:
    std::unique_ptr<io::Drive> inner_;
    std::vector<std::uint64_t> written_;  // by block: number of the write, 0 when durable
    std::uint64_t completed_ = 0;
    std::map<io::Command*, std::uint64_t> flushes_;  // writes completed when it was submitted
};

std::uint64_t TestGroup::unflushed_bytes(std::uint32_t slot) const {
    return caches_[slot]->unflushed_bytes(kDataOffset, layout_.shape().member_data_bytes);
}

bool TestGroup::is_flushed(std::uint32_t slot, std::uint64_t data_offset,
                           std::uint64_t bytes) const {
    return caches_[slot]->unflushed_bytes(kDataOffset + data_offset, bytes) == 0;
}

TestGroup::TestGroup(const geometry::Shape& shape, std::uint64_t region_stripes,
                     std::span<const std::uint64_t> dirty, Parity parity)
    : reactor_(clock_),
      layout_(layout_of(shape)),
      region_stripes_(region_stripes),
      arena_(std::move(io::BufferArena::make(64 * kMiB)).value()),
      coder_(make_coder(parity)),
      stores_(shape.members),
      drives_(shape.members),
      caches_(shape.members) {
    for (std::uint32_t slot = 0; slot < shape.members; ++slot) {
        faults_.push_back(std::make_unique<DriveFaults>());
        install_drive(slot);
        view_.members[slot].access = Access::kFull;
        view_.members[slot].data_offset = kDataOffset;
    }
    intent::Options options;
    options.group.bytes[0] = 1;
    options.regions = static_cast<std::uint32_t>(divide_up(layout_.stripes(), region_stripes));
    bitmap_ = std::make_unique<intent::Bitmap>(
        options, format::BitmapContent{{dirty.begin(), dirty.end()}, {}}, reactor_, *this);
    const EngineOptions engine_options{layout_, region_stripes, 24};
    engine_ = std::make_unique<Engine>(engine_options, reactor_, *arena_, *coder_, *bitmap_, *this);
    engine_->set_suspect_regions(dirty);
    adopt();
}

TestGroup::~TestGroup() {
    run_until([&] { return engine_->idle() && bitmap_->idle(); });
    engine_.reset();
    bitmap_.reset();
}

void TestGroup::retire(std::uint32_t slot) {
    if (drives_[slot] != nullptr) old_drives_.push_back(std::move(drives_[slot]));
}

void TestGroup::destroy_retired() {
    std::erase_if(old_drives_, [&](const auto& drive) {
        if (drive->in_flight() != 0) return false;
        const bool kept = engine_->refers_to(*drive);
        kept_for_engine += kept ? 1 : 0;
        return !kept;
    });
}

void TestGroup::install_drive(std::uint32_t slot) {
    retire(slot);
    if (stores_[slot] == nullptr) {
        const std::uint64_t size = kDataOffset + layout_.shape().member_data_bytes + kMiB;
        stores_[slot] = io::make_ram_store("RAM" + std::to_string(drive_number_++), size,
                                           layout_.block_bytes());
    }
    DriveFaults& faults = *faults_[slot];
    faults = DriveFaults{};
    const auto fault = [&faults](const io::Command& command) {
        if (faults.gone) return ENODEV;
        if (command.opcode == io::Opcode::kRead) {
            const bool bad = command.offset < faults.bad_end &&
                             faults.bad_begin < command.offset + command.length_bytes;
            return faults.fail_reads || bad ? EIO : 0;
        }
        if (command.opcode == io::Opcode::kFlush && faults.fail_flushes) return EIO;
        if (faults.fail_writes) return EIO;
        if (faults.fail_write_after >= 0 && faults.fail_write_after-- == 0) return EIO;
        return 0;
    };
    auto cached = std::make_unique<CachedDrive>(io::make_ram_drive(stores_[slot], reactor_));
    caches_[slot] = cached.get();
    auto ram = std::make_unique<HoldingDrive>(std::move(cached), reactor_, faults.hold_flushes);
    drives_[slot] = io::make_faulty_drive(std::move(ram), reactor_, fault);
    view_.members[slot].drive = drives_[slot].get();
}

void TestGroup::adopt() {
    ++view_.version;
    engine_->adopt(view_);
}

std::uint32_t TestGroup::missing_mask() const {
    std::uint32_t mask = 0;
    for (std::uint32_t slot = 0; slot < layout_.members(); ++slot) {
        if (view_.members[slot].access != Access::kFull) mask |= 1u << slot;
    }
    return mask;
}

void TestGroup::member_fault(Slot slot, FaultKind kind, int, std::uint64_t) {
    ++faults_seen;
    if (kind != FaultKind::kReadError) to_remove_ |= 1u << slot.get();
}

void TestGroup::bitmap_write_failed(Slot slot, int) {
    ++faults_seen;
    to_remove_ |= 1u << slot.get();
}

void TestGroup::turn() {
    clock_.now_ns += 1'000'000;
    reactor_.run_once();
    take_out_faulty();
    destroy_retired();
}

void TestGroup::take_out_faulty() {
    if (view_.failed) to_remove_ = 0;
    while (to_remove_ != 0) {
        const auto slot = static_cast<std::uint32_t>(std::countr_zero(to_remove_));
        to_remove_ &= to_remove_ - 1;
        if (view_.members[slot].access == Access::kNone) continue;
        // The last copy of something stays on a mirror.
        const bool is_last_copy =
            !layout_.has_parity() && !layout_.survives(missing_mask() | 1u << slot);
        if (!is_last_copy || faults_[slot]->gone) lose(slot);
    }
}

void TestGroup::run_until(const std::function<bool()>& condition) {
    for (std::uint32_t turns = 0; !condition(); ++turns) {
        WARPRAID_ASSERT(turns < 2'000'000);
        turn();
    }
}

int TestGroup::execute(block::Operation operation, std::uint64_t offset, std::uint64_t length,
                       std::byte* data, bool fua) {
    block::Request request;
    bool done = false;
    request.operation = operation;
    request.offset = offset;
    request.length_bytes = length;
    request.data = data;
    request.fua = fua;
    request.owner = &done;
    request.complete = [](block::Request& finished) { *static_cast<bool*>(finished.owner) = true; };
    engine_->submit(request);
    run_until([&] { return done; });
    return request.error;
}

void TestGroup::lose(std::uint32_t slot) {
    MemberView& member = view_.members[slot];
    member.access = Access::kNone;
    member.drive = nullptr;
    retire(slot);
    if (!layout_.survives(missing_mask())) view_.failed = true;
    adopt();
}

void TestGroup::fail_group() {
    view_.failed = true;
    adopt();
}

void TestGroup::replace(std::uint32_t slot) {
    WARPRAID_ASSERT(view_.members[slot].access == Access::kNone);
    stores_[slot].reset();
    install_drive(slot);
    std::memset(bytes(slot) + kDataOffset, 0xa5, layout_.shape().member_data_bytes);
    view_.members[slot].access = Access::kRebuilding;
    view_.members[slot].by_bitmap = false;
    view_.members[slot].rebuilt_bytes = 0;
    adopt();
}

void TestGroup::give_back(std::uint32_t slot) {
    WARPRAID_ASSERT(view_.members[slot].access == Access::kNone);
    install_drive(slot);
    view_.members[slot].access = Access::kRebuilding;
    view_.members[slot].by_bitmap = true;
    adopt();
}

bool TestGroup::run_tasks(StripeTask::Kind kind, Stripe first, Stripe end,
                          const std::function<void()>& meanwhile, std::uint64_t* mismatches) {
    constexpr std::size_t kWindow = 3;
    std::vector<StripeTask> tasks(kWindow);
    std::size_t in_flight = 0;
    bool ok = true;
    struct Owner {
        std::size_t* in_flight;
        bool* ok;
        std::uint64_t* mismatches;
    } owner{&in_flight, &ok, mismatches};
    std::uint64_t next = first.get();
    std::size_t index = 0;
    while (in_flight > 0 || (ok && next < end.get())) {
        while (ok && next < end.get() && in_flight < kWindow) {
            StripeTask& task = tasks[index++ % kWindow];
            task = StripeTask{};
            task.kind = kind;
            task.first = Stripe(next);
            const std::uint64_t count = std::min<std::uint64_t>(
                stripes_per_task(layout_.stripe_depth_bytes()), end.get() - next);
            task.count = static_cast<std::uint32_t>(count);
            task.owner = &owner;
            task.complete = [](StripeTask& done) {
                const Owner& to = *static_cast<Owner*>(done.owner);
                --*to.in_flight;
                if (done.error != 0) *to.ok = false;
                if (to.mismatches != nullptr) *to.mismatches += done.mismatches;
            };
            ++in_flight;
            next += count;
            engine_->submit(task);
        }
        turn();
        if (meanwhile) meanwhile();
    }
    return ok;
}

bool TestGroup::rebuild(const std::function<void()>& meanwhile) {
    for (std::uint32_t region = 0; region < engine_->region_count(); ++region) {
        bool stale = false;
        for (std::uint32_t slot = 0; slot < layout_.members(); ++slot) {
            stale = stale ||
                    engine_->is_region_stale(Slot(static_cast<std::uint8_t>(slot)), Region(region));
        }
        if (!stale) continue;
        if (!run_tasks(StripeTask::Kind::kRebuild, engine_->region_first_stripe(Region(region)),
                       engine_->region_end_stripe(Region(region)), meanwhile, nullptr)) {
            return false;
        }
    }
    for (std::uint32_t slot = 0; slot < layout_.members(); ++slot) {
        if (view_.members[slot].access != Access::kRebuilding) continue;
        if (engine_->stale_regions(Slot(static_cast<std::uint8_t>(slot))) != 0) return false;
        view_.members[slot].access = Access::kFull;
    }
    adopt();
    return true;
}

void TestGroup::resync() {
    for (std::uint32_t region = 0; region < engine_->region_count(); ++region) {
        if (!engine_->is_region_suspect(Region(region))) continue;
        const bool ok =
            run_tasks(StripeTask::Kind::kResync, engine_->region_first_stripe(Region(region)),
                      engine_->region_end_stripe(Region(region)), {}, nullptr);
        WARPRAID_ASSERT(ok);
    }
}

std::uint64_t TestGroup::count_mismatches() {
    std::uint64_t mismatches = 0;
    const bool ok =
        run_tasks(StripeTask::Kind::kVerify, Stripe(0), Stripe(layout_.stripes()), {}, &mismatches);
    WARPRAID_ASSERT(ok);
    return mismatches;
}

}  // namespace warpraid::array
