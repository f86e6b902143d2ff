// Which drive a command means. A path is no identity: what it points to may have changed since the
// caller looked, so it names a drive only as long as nothing speaks for another one.
#include <fmt/format.h>

#include <algorithm>

#include "base/number_text.h"
#include "control/service_impl.h"

namespace warpraid::control {

namespace {

bool is_path(const std::string& name) {
    return name.starts_with('/');
}

/// Where queries show the member.
std::string shown_path(const Group& group, Slot slot) {
    const io::BlockingDrive* held = group.drive(slot);
    return held != nullptr ? held->identity().path : group.record().members[slot.get()].path;
}

bool is_member_of(const Group& group, Slot slot, const io::DriveIdentity& identity) {
    const io::BlockingDrive* held = group.drive(slot);
    if (held != nullptr) return identity_key(held->identity()) == identity_key(identity);
    return has_serial(group.record().members[slot.get()], identity.serial);
}

Error path_in_doubt(const std::string& path, const io::DriveIdentity* there,
                    const std::vector<std::string>& others) {
    return Error{ErrorCode::kStaleToken,
                 fmt::format("{} is at {} now, and drive {} was: look at list drive, and name the "
                             "one that is meant by its serial number",
                             there != nullptr ? "drive " + there->serial : "no drive", path,
                             fmt::join(others, ", "))};
}

}  // namespace

const format::Member& ServiceImpl::member_of(const MemberPlace& place) {
    return place.running->group->record().members[place.slot.get()];
}

std::vector<ServiceImpl::MemberPlace> ServiceImpl::member_places() {
    std::vector<MemberPlace> places;
    for (const auto& running : running_) {
        const std::vector<format::Member>& members = running->group->record().members;
        for (std::size_t index = 0; index < members.size(); ++index) {
            if (members[index].drive.is_nil()) continue;
            places.push_back({running.get(), Slot(static_cast<std::uint8_t>(index))});
        }
    }
    // A drive that was put out of one group may be a member of another by now.
    std::stable_partition(places.begin(), places.end(), [](const MemberPlace& place) {
        return place.running->group->is_live(place.slot);
    });
    return places;
}

std::optional<ServiceImpl::MemberPlace> ServiceImpl::find_live_member(const Uuid& drive) const {
    for (const auto& running : running_) {
        const std::vector<format::Member>& members = running->group->record().members;
        for (std::size_t index = 0; index < members.size(); ++index) {
            const Slot slot(static_cast<std::uint8_t>(index));
            if (members[index].drive != drive || !running->group->is_live(slot)) continue;
            return MemberPlace{running.get(), slot};
        }
    }
    return std::nullopt;
}

Result<ServiceImpl::MemberPlace> ServiceImpl::find_member(const std::string& name,
                                                          bool has_looked) {
    if (is_path(name)) return find_member_at(name, has_looked);
    const std::size_t colon = name.rfind(':');
    if (colon != std::string::npos) {
        const std::optional<std::uint32_t> slot =
            parse_whole_number<std::uint32_t>(std::string_view(name).substr(colon + 1));
        Result<Running*> running = find_group(name.substr(0, colon));
        if (slot && running.ok()) {
            if (*slot >= (*running)->group->layout().members()) {
                return Error{ErrorCode::kNotFound,
                             fmt::format("group {} has slots 0 to {}, not {}", (*running)->name,
                                         (*running)->group->layout().members() - 1, *slot)};
            }
            return MemberPlace{*running, Slot(static_cast<std::uint8_t>(*slot))};
        }
    }
    WARPRAID_TRY_ASSIGN(const RegisteredDrive* drive, registry_.find(name));
    const std::string serial = drive != nullptr ? drive->identity.serial : name;
    for (const MemberPlace& place : member_places()) {
        const format::Member& member = member_of(place);
        if (has_serial(member, serial) || member.drive.to_text() == name) return place;
    }
    return Error{ErrorCode::kNotFound,
                 "'" + name + "' is no member of a running group: see list drive"};
}

Result<ServiceImpl::MemberPlace> ServiceImpl::find_seen_member(
    const std::string& name, const std::optional<std::uint64_t>& generation) {
    WARPRAID_TRY_ASSIGN(const MemberPlace place, find_member(name, generation.has_value()));
    const std::uint64_t now = place.running->group->record().generation.get();
    if (!generation || *generation == now) return place;
    return Error{ErrorCode::kStaleToken,
                 fmt::format("group {} is at generation {}, the command was given for {}: look at "
                             "it again with 'describe group {}' first",
                             place.running->name, now, *generation, place.running->name)};
}

// Asked of the path itself: neither a record nor the latest scan knows what is there by now.
Result<ServiceImpl::MemberPlace> ServiceImpl::find_member_at(const std::string& path,
                                                             bool has_looked) {
    const auto opened = provider_.open(path, io::OpenMode::kReadOnly);
    const io::DriveIdentity* there = opened.ok() ? &(*opened)->identity() : nullptr;
    std::optional<MemberPlace> meant;
    std::vector<MemberPlace> shown;
    for (const MemberPlace& place : member_places()) {
        const Group& group = *place.running->group;
        if (there != nullptr && is_member_of(group, place.slot, *there)) {
            if (!meant) meant = place;
        } else if (shown_path(group, place.slot) == path) {
            shown.push_back(place);
        }
    }
    // A drive that is gone is still called by the path that it had.
    if (there == nullptr && !shown.empty()) {
        meant = shown.front();
        std::erase_if(shown, [&](const MemberPlace& place) {
            return member_of(place).serial == member_of(*meant).serial;
        });
    }
    std::vector<std::string> others;
    for (const MemberPlace& place : shown) others.push_back(member_of(place).serial);
    // Who saw the group as it is now saw where its members are, whoever was there before.
    if (!has_looked || !meant) {
        const std::string serial = meant              ? member_of(*meant).serial
                                   : there != nullptr ? there->serial
                                                      : std::string();
        for (const std::string& other : registry_.others_at(path, serial)) others.push_back(other);
    }
    if (!others.empty()) return path_in_doubt(path, there, others);
    if (!meant) {
        return Error{ErrorCode::kNotFound,
                     "'" + path + "' is no member of a running group: see list drive"};
    }
    if (there != nullptr) WARPRAID_TRY(check_not_moved(*meant, path, *there));
    return *meant;
}

Status ServiceImpl::check_path_means(const std::string& name, const io::DriveIdentity& drive) {
    if (!is_path(name)) return success();
    const auto opened = provider_.open(name, io::OpenMode::kReadOnly);
    const io::DriveIdentity* there = opened.ok() ? &(*opened)->identity() : nullptr;
    std::vector<std::string> others = registry_.others_at(name, drive.serial);
    if (there != nullptr && identity_key(*there) != identity_key(drive)) {
        others.push_back(drive.serial);
    }
    if (others.empty()) return success();
    return path_in_doubt(name, there, others);
}

// It may be another name of the path that is shown, such as a link to it.
Status ServiceImpl::check_not_moved(const MemberPlace& place, const std::string& path,
                                    const io::DriveIdentity& there) {
    const std::string shown = shown_path(*place.running->group, place.slot);
    if (shown == path) return success();
    const auto opened = provider_.open(shown, io::OpenMode::kReadOnly);
    if (opened.ok() && identity_key((*opened)->identity()) == identity_key(there)) return success();
    return Error{ErrorCode::kStaleToken,
                 fmt::format("{}, member {} of group {}, was last seen at {}: look at list drive, "
                             "and name the one that is meant by its serial number",
                             drive_text(there), place.slot.get(), place.running->name, shown)};
}

}  // namespace warpraid::control
