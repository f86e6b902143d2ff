#include "export/nbd/exports.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "base/assert.h"
#include "base/units.h"
#include "export/nbd/protocol.h"

namespace warpraid::nbd {

namespace {

ExportOffer make_offer(const Export& entry) {
    ExportOffer offer;
    offer.name = entry.info.name;
    offer.description = std::string_view(entry.info.description).substr(0, kStringBytesMax);
    offer.size_bytes = entry.limits.size_bytes;
    offer.read_only = entry.limits.read_only;
    offer.block_bytes_min = entry.limits.block_bytes;
    offer.block_bytes_max = static_cast<std::uint32_t>(entry.limits.request_bytes_max);
    // Clients insist on a power of two here, which a stripe of user data seldom is.
    const std::uint64_t smallest = std::max<std::uint64_t>(4 * kKiB, entry.limits.block_bytes);
    const std::uint64_t optimal = std::bit_floor(std::max(entry.limits.optimal_bytes, smallest));
    const std::uint64_t largest = std::bit_floor(entry.limits.request_bytes_max);
    offer.block_bytes_preferred = static_cast<std::uint32_t>(std::min(optimal, largest));
    return offer;
}

}  // namespace

std::uint16_t transmission_flags(const ExportOffer& offer, bool structured_replies) {
    unsigned flags = kFlagHasFlags | kFlagSendFlush | kFlagSendFua | kFlagMultiConn;
    flags |= offer.read_only ? unsigned{kFlagReadOnly}
                             : unsigned{kFlagSendTrim} | unsigned{kFlagSendWriteZeroes};
    // Every read is answered in one chunk, so this holds as soon as chunks were agreed on.
    if (structured_replies) flags |= kFlagSendDontFragment;
    return static_cast<std::uint16_t>(flags);
}

void ExportTable::add(const ExportInfo& info) {
    WARPRAID_ASSERT(info.device != nullptr);
    WARPRAID_ASSERT(info.name.size() <= limits::kNbdExportNameBytesMax);
    const auto [place, is_new] = exports_.try_emplace(info.name);
    WARPRAID_ASSERT(is_new);
    Export& entry = place->second;
    entry.info = info;
    entry.limits = info.device->limits();
    entry.limits.read_only |= info.read_only;
    const std::uint64_t longest = std::min(entry.limits.request_bytes_max, request_bytes_max_);
    entry.limits.request_bytes_max = round_down(longest, entry.limits.block_bytes);
    WARPRAID_ASSERT(entry.limits.request_bytes_max > 0);
}

const Export* ExportTable::find_present(std::string_view name) const {
    const auto found = exports_.find(name);
    if (found != exports_.end()) return found->second.removing ? nullptr : &found->second;
    if (!name.empty()) return nullptr;
    const Export* only = nullptr;
    for (const auto& [key, entry] : exports_) {
        if (entry.removing) continue;
        if (only != nullptr) return nullptr;
        only = &entry;
    }
    return only;
}

Export* ExportTable::find(std::string_view name) {
    return const_cast<Export*>(find_present(name));
}

Export* ExportTable::find_exact(std::string_view name) {
    const auto found = exports_.find(name);
    return found == exports_.end() ? nullptr : &found->second;
}

std::vector<std::function<void()>> ExportTable::take_removed() {
    std::vector<std::function<void()>> callbacks;
    for (auto place = exports_.begin(); place != exports_.end();) {
        Export& entry = place->second;
        if (!entry.removing || entry.connections != 0) {
            ++place;
            continue;
        }
        std::move(entry.removed.begin(), entry.removed.end(), std::back_inserter(callbacks));
        place = exports_.erase(place);
    }
    return callbacks;
}

bool ExportTable::has_removals() const {
    return std::any_of(exports_.begin(), exports_.end(),
                       [](const auto& place) { return place.second.removing; });
}

std::optional<ExportOffer> ExportTable::find_offer(std::string_view name) const {
    const Export* entry = find_present(name);
    if (entry == nullptr) return std::nullopt;
    return make_offer(*entry);
}

std::optional<ExportOffer> ExportTable::offer_after(const std::string* name) const {
    auto place = name == nullptr ? exports_.begin() : exports_.upper_bound(*name);
    while (place != exports_.end() && place->second.removing) ++place;
    if (place == exports_.end()) return std::nullopt;
    return make_offer(place->second);
}

}  // namespace warpraid::nbd
