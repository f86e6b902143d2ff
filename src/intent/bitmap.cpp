#include "intent/bitmap.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/assert.h"
#include "intent/member_io.h"

namespace warpraid::intent {
namespace {

constexpr std::uint32_t kWordBits = 64;
constexpr std::uint32_t kWordsPerPage = format::kBitsPerPage / kWordBits;
static_assert(format::kBitsPerPage % kWordBits == 0);
static_assert(std::endian::native == std::endian::little);  // words are written as they lie

/// A set of regions.
class RegionSet {
  public:
    explicit RegionSet(std::size_t words) : words_(words) {}
    bool has(std::uint32_t region) const {
        return (words_[region / kWordBits] >> (region % kWordBits) & 1) != 0;
    }
    void add(std::uint32_t region) { words_[region / kWordBits] |= mask(region); }
    void remove(std::uint32_t region) { words_[region / kWordBits] &= ~mask(region); }
    std::vector<std::uint64_t>& words() { return words_; }
    const std::vector<std::uint64_t>& words() const { return words_; }
    std::span<std::uint64_t> page(std::uint32_t page) {
        return std::span(words_).subspan(std::size_t{page} * kWordsPerPage, kWordsPerPage);
    }

  private:
    static std::uint64_t mask(std::uint32_t region) {
        return std::uint64_t{1} << (region % kWordBits);
    }
    std::vector<std::uint64_t> words_;
};

bool is_set(std::span<const std::uint64_t> words, std::uint32_t region) {
    const std::size_t word = region / kWordBits;
    return word < words.size() && (words[word] >> (region % kWordBits) & 1) != 0;
}

/// One of the two maps, in memory and on the disks.
struct Map {
    explicit Map(std::size_t words) : now(words), image(words), written(words) {}

    void find_on_disk(std::uint32_t region) {
        now.add(region);
        written.add(region);
    }
    /// Until the round has ended the disks hold the old or the new page.
    void start_round(std::uint32_t page) {
        std::ranges::copy(now.page(page), image.page(page).begin());
        const std::span<const std::uint64_t> from = image.page(page);
        const std::span<std::uint64_t> possible = written.page(page);
        for (std::size_t i = 0; i < from.size(); ++i) possible[i] |= from[i];
    }
    void finish_round(std::uint32_t page) {
        std::ranges::copy(image.page(page), written.page(page).begin());
    }
    std::uint32_t count() const {
        std::uint32_t count = 0;
        for (std::size_t i = 0; i < now.words().size(); ++i) {
            count += static_cast<std::uint32_t>(std::popcount(now.words()[i] | written.words()[i]));
        }
        return count;
    }

    RegionSet now;      // what the disks are to say
    RegionSet image;    // what the round in flight of each page writes
    RegionSet written;  // may be set on the disk of some member
};

/// A page is written to all members at once, one round at a time; whoever wants more meanwhile goes
/// into the next round.
struct Page {
    bool wanted = false;   // what is in memory must reach the disks
    bool writing = false;  // a round is in flight
    std::uint32_t pending = 0;
    std::uint64_t sequence = 0;
    std::uint64_t epoch = 0;  // of the membership the round was started with
};

}  // namespace

struct Bitmap::Impl final : MemberIoOwner {
    Impl(const Options& options_in, const format::BitmapContent& found, io::Reactor& reactor_in,
         Listener& listener_in);

    void page_written(MemberIo& member, std::uint32_t page, int error) override;
    void flushed(MemberIo& member, int error) override;

    void start_round(std::uint32_t page);
    void finish_round(std::uint32_t page);
    void start_wanted_rounds();
    void fail(MemberIo& member, int error);
    bool all_durable(Region first, Region last) const;
    void wake_waiters();

    void start_clearing(bool aged_only);
    void finish_clearing();
    void record_missed(bool record);

    void release_debts(MemberIo& member);
    void set_members(std::span<const Target> targets);
    void discard_departed();

    Options options;
    io::Reactor& reactor;
    Listener& listener;
    std::vector<Page> pages;

    Map dirty;          // on the disks at the latest before the next data write
    RegionSet durable;  // surely dirty on the disks of every member, now and after each round
    Map missed;         // on the disks at the latest when dirty is not
    RegionSet touched;  // written since the last sweep
    RegionSet busy;     // writers > 0
    RegionSet awaiting_resync;
    RegionSet clearing;  // to be cleared once the flush under way has ended well
    std::vector<std::uint32_t> writers;

    std::vector<std::unique_ptr<MemberIo>> members;
    std::vector<std::unique_ptr<MemberIo>> departed;  // until their last command has come back
    std::uint64_t epoch = 0;                          // grows with every newcomer
    IntrusiveFifo<Waiter> waiters;

    bool hold = false;
    bool recording = false;
    bool flushing = false;
    bool clear_failed = false;
    std::uint32_t flushes_pending = 0;
    std::uint64_t next_sweep_ns = 0;
};

Bitmap::Impl::Impl(const Options& options_in, const format::BitmapContent& found,
                   io::Reactor& reactor_in, Listener& listener_in)
    : options(options_in),
      reactor(reactor_in),
      listener(listener_in),
      pages(divide_up(options_in.regions, format::kBitsPerPage)),
      dirty(pages.size() * kWordsPerPage),
      durable(dirty.now.words().size()),
      missed(dirty.now.words().size()),
      touched(dirty.now.words().size()),
      busy(dirty.now.words().size()),
      awaiting_resync(dirty.now.words().size()),
      clearing(dirty.now.words().size()),
      writers(options_in.regions),
      next_sweep_ns(reactor_in.now_ns() + options_in.idle_ns_before_clear) {
    WARPRAID_ASSERT(options.regions > 0 && options.regions <= limits::kRegionsMax);
    for (std::uint32_t region = 0; region < options.regions; ++region) {
        if (is_set(found.missed, region)) missed.find_on_disk(region);
        if (!is_set(found.dirty, region)) continue;
        dirty.find_on_disk(region);
        awaiting_resync.add(region);
    }
}

// ---- rounds -------------------------------------------------------------------------------------

void Bitmap::Impl::start_round(std::uint32_t number) {
    Page& page = pages[number];
    WARPRAID_ASSERT(!page.writing);
    page.wanted = false;
    page.writing = true;
    page.epoch = epoch;
    ++page.sequence;
    dirty.start_round(number);
    missed.start_round(number);
    const std::span<const std::uint64_t> image = dirty.image.page(number);
    const std::span<std::uint64_t> sure = durable.page(number);
    for (std::size_t i = 0; i < sure.size(); ++i) sure[i] &= image[i];

    const format::BitmapPageHeader header{options.group, number, page.sequence};
    const format::BitmapMaps maps{std::as_bytes(image), std::as_bytes(missed.image.page(number))};
    page.pending = 1;  // kept until all are submitted
    for (const auto& member : members) {
        ++page.pending;
        member->owes_page[number] = true;
        if (member->failed) continue;  // its debt is taken off when it leaves the membership
        format::encode(header, maps, member->image(number));
        member->write(number);
    }
    if (--page.pending == 0) finish_round(number);
}

void Bitmap::Impl::finish_round(std::uint32_t number) {
    Page& page = pages[number];
    page.writing = false;
    if (page.epoch != epoch) {
        page.wanted = true;  // a member that joined meanwhile has not got this page
        return;
    }
    dirty.finish_round(number);
    missed.finish_round(number);
    std::ranges::copy(dirty.image.page(number), durable.page(number).begin());
}

void Bitmap::Impl::start_wanted_rounds() {
    for (std::uint32_t number = 0; number < pages.size(); ++number) {
        if (pages[number].wanted && !pages[number].writing) start_round(number);
    }
}

void Bitmap::Impl::page_written(MemberIo& member, std::uint32_t number, int error) {
    if (error != 0) return fail(member, error);
    Page& page = pages[number];
    WARPRAID_ASSERT(page.pending > 0 && member.owes_page[number]);
    member.owes_page[number] = false;
    if (--page.pending > 0) return;
    finish_round(number);
    if (page.wanted) start_round(number);
    wake_waiters();
}

/// The round goes on waiting for `member` until it has left: a bit that one live member does not
/// have would be forgotten if that member were the only one to come back.
void Bitmap::Impl::fail(MemberIo& member, int error) {
    if (member.failed) return;
    member.failed = true;
    if (flushing) clear_failed = true;
    listener.bitmap_write_failed(member.slot, error);
}

bool Bitmap::Impl::all_durable(Region first, Region last) const {
    if (members.empty()) return true;
    for (std::uint32_t region = first.get(); region <= last.get(); ++region) {
        if (!durable.has(region)) return false;
    }
    return true;
}

void Bitmap::Impl::wake_waiters() {
    IntrusiveFifo<Waiter> ready;
    Waiter* previous = nullptr;
    for (Waiter* waiter = waiters.front(); waiter != nullptr;) {
        Waiter* const next = IntrusiveFifo<Waiter>::after(*waiter);
        if (all_durable(waiter->first, waiter->last)) {
            waiters.remove_after(previous, *waiter);
            ready.push_back(*waiter);
        } else {
            previous = waiter;
        }
        waiter = next;
    }
    while (Waiter* waiter = ready.pop_front()) waiter->ready(*waiter);
}

// ---- clearing -----------------------------------------------------------------------------------

void Bitmap::Impl::start_clearing(bool aged_only) {
    if (flushing) return;
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < dirty.now.words().size(); ++i) {
        const std::uint64_t recent = aged_only ? touched.words()[i] : 0;
        const std::uint64_t keep = recent | busy.words()[i] | awaiting_resync.words()[i];
        clearing.words()[i] = dirty.now.words()[i] & ~keep;
        any |= clearing.words()[i];
        touched.words()[i] = busy.words()[i];
    }
    const auto failed = [](const auto& member) { return member->failed; };
    if (any == 0 || hold || members.empty() || std::ranges::any_of(members, failed)) return;
    flushing = true;
    clear_failed = false;
    flushes_pending = static_cast<std::uint32_t>(members.size());
    for (const auto& member : members) {
        member->owes_flush = true;
        member->flush();
    }
}

void Bitmap::Impl::flushed(MemberIo& member, int error) {
    if (error != 0) fail(member, error);
    WARPRAID_ASSERT(flushing && flushes_pending > 0);
    member.owes_flush = false;
    if (--flushes_pending == 0) finish_clearing();
}

void Bitmap::Impl::finish_clearing() {
    flushing = false;
    if (hold || clear_failed) return;
    for (std::size_t i = 0; i < dirty.now.words().size(); ++i) {
        if (clearing.words()[i] == 0) continue;
        dirty.now.words()[i] &= ~clearing.words()[i];
        pages[i / kWordsPerPage].wanted = true;
    }
    start_wanted_rounds();
}

// ---- what members that are away missed ----------------------------------------------------------

void Bitmap::Impl::record_missed(bool record) {
    recording = record;
    for (std::size_t i = 0; i < missed.now.words().size(); ++i) {
        std::uint64_t& word = missed.now.words()[i];
        if (recording) {
            // Dirty on the disks already; the write that clears that will set this.
            word |= dirty.now.words()[i];
        } else if (std::exchange(word, 0) != 0) {
            pages[i / kWordsPerPage].wanted = true;
        }
    }
    start_wanted_rounds();
}

// ---- membership ---------------------------------------------------------------------------------

/// Takes off what a leaver still owes to the rounds and to the flush under way: its completions are
/// not listened to any more.
void Bitmap::Impl::release_debts(MemberIo& member) {
    for (std::uint32_t number = 0; number < pages.size(); ++number) {
        if (!member.owes_page[number]) continue;
        member.owes_page[number] = false;
        WARPRAID_ASSERT(pages[number].writing && pages[number].pending > 0);
        if (--pages[number].pending == 0) finish_round(number);
    }
    if (!member.owes_flush) return;
    member.owes_flush = false;
    if (--flushes_pending == 0) flushing = false;
}

void Bitmap::Impl::set_members(std::span<const Target> targets) {
    const auto is_of = [](const MemberIo& member, const Target& target) {
        return target.slot == member.slot && target.drive == &member.drive;
    };
    for (auto& member : members) {
        const auto names_it = [&](const Target& target) { return is_of(*member, target); };
        if (std::ranges::any_of(targets, names_it)) continue;
        release_debts(*member);
        member->owner = nullptr;
        departed.push_back(std::move(member));
        clear_failed = true;
    }
    std::erase(members, nullptr);

    bool newcomers = false;
    for (const Target& target : targets) {
        const auto is_it = [&](const auto& member) { return is_of(*member, target); };
        if (std::ranges::any_of(members, is_it)) continue;
        const auto count = static_cast<std::uint32_t>(pages.size());
        members.push_back(std::make_unique<MemberIo>(*this, target.slot, *target.drive, count));
        newcomers = true;
    }
    if (newcomers) {
        // Nothing is durable on every member until each page was written once more.
        ++epoch;
        clear_failed = true;
        std::ranges::fill(durable.words(), 0);
        for (Page& page : pages) page.wanted = true;
    }
    start_wanted_rounds();
    wake_waiters();
}

void Bitmap::Impl::discard_departed() {
    std::erase_if(departed, [](const auto& member) { return member->in_flight() == 0; });
}

// ---- interface ----------------------------------------------------------------------------------

Bitmap::Bitmap(const Options& options, const format::BitmapContent& found, io::Reactor& reactor,
               Listener& listener)
    : impl_(std::make_unique<Impl>(options, found, reactor, listener)) {
    reactor.add_poller(*this);
}

Bitmap::~Bitmap() {
    WARPRAID_ASSERT(idle());
    impl_->reactor.remove_poller(*this);
}

void Bitmap::set_members(std::span<const Target> members) {
    impl_->set_members(members);
}

void Bitmap::hold_clearing(bool hold) {
    impl_->hold = hold;
}

void Bitmap::record_missed(bool record) {
    impl_->record_missed(record);
}

bool Bitmap::begin_write(Waiter& waiter) {
    Impl& impl = *impl_;
    WARPRAID_ASSERT(waiter.first <= waiter.last && waiter.last.get() < impl.options.regions);
    for (std::uint32_t region = waiter.first.get(); region <= waiter.last.get(); ++region) {
        if (impl.writers[region]++ == 0) impl.busy.add(region);
        impl.touched.add(region);
        impl.clearing.remove(region);
        if (impl.recording) impl.missed.now.add(region);
        if (impl.dirty.now.has(region)) continue;
        impl.dirty.now.add(region);
        impl.pages[region / format::kBitsPerPage].wanted = true;
    }
    if (impl.all_durable(waiter.first, waiter.last)) return true;
    impl.waiters.push_back(waiter);
    impl.start_wanted_rounds();
    return false;
}

void Bitmap::end_write(Region first, Region last) {
    Impl& impl = *impl_;
    for (std::uint32_t region = first.get(); region <= last.get(); ++region) {
        WARPRAID_ASSERT(impl.writers[region] > 0);
        if (--impl.writers[region] == 0) impl.busy.remove(region);
        impl.touched.add(region);
    }
}

bool Bitmap::is_dirty(Region region) const {
    return impl_->dirty.now.has(region.get());
}

std::uint32_t Bitmap::dirty_count() const {
    return impl_->dirty.count();
}

std::uint32_t Bitmap::missed_count() const {
    return impl_->missed.count();
}

std::vector<std::uint64_t> Bitmap::dirty_or_missed() const {
    std::vector<std::uint64_t> either(divide_up(impl_->options.regions, kWordBits));
    for (std::size_t i = 0; i < either.size(); ++i) {
        either[i] = impl_->dirty.now.words()[i] | impl_->missed.now.words()[i];
    }
    return either;
}

void Bitmap::clear_after_resync(Region region) {
    impl_->awaiting_resync.remove(region.get());
    impl_->touched.add(region.get());
}

void Bitmap::clear_idle_now() {
    impl_->start_clearing(false);
}

bool Bitmap::idle() const {
    const auto writes = [](const Page& page) { return page.writing; };
    return impl_->waiters.empty() && !impl_->flushing &&
           std::ranges::none_of(impl_->pages, writes) &&
           std::ranges::all_of(impl_->departed,
                               [](const auto& member) { return member->in_flight() == 0; });
}

bool Bitmap::poll(std::uint64_t now_ns) {
    impl_->discard_departed();
    if (now_ns < impl_->next_sweep_ns) return false;
    impl_->next_sweep_ns = now_ns + impl_->options.idle_ns_before_clear;
    impl_->start_clearing(true);
    return impl_->flushing;
}

}  // namespace warpraid::intent
