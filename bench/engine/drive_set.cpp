#include "engine/drive_set.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/size_text.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "io/manual_reactor.h"
#include "io/uring/provider.h"

namespace warpraid::bench {

namespace {

using Kind = DriveChoice::Kind;

constexpr std::uint32_t kMembersDefault = 8;

std::uint64_t default_bytes(Kind kind) {
    switch (kind) {
        case Kind::kRam:
            return 256 * kMiB;
        case Kind::kNull:
            return 64 * kGiB;
        case Kind::kFiles:
        case Kind::kPaths:
            break;
    }
    return kGiB;
}

// "10" or "10x256M".
Status parse_count(std::string_view text, DriveChoice& choice) {
    const std::size_t cross = text.find('x');
    const std::string_view number = text.substr(0, cross);
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), choice.count);
    if (error != std::errc() || end != number.data() + number.size() || choice.count == 0) {
        return Error{
            ErrorCode::kInvalidArgument,
            fmt::format("'{}' is not a number of drives; write for example ram:10x256M", number)};
    }
    if (cross == std::string_view::npos) return success();
    WARPRAID_TRY_ASSIGN(choice.bytes, parse_size(text.substr(cross + 1)));
    return success();
}

Status make_file(const std::string& path, std::uint64_t bytes) {
    const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.get() < 0) return system_error(ErrorCode::kSystem, "create " + path, errno);
    if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
        return system_error(ErrorCode::kSystem, "resize " + path, errno);
    }
    return success();
}

}  // namespace

Result<DriveChoice> parse_drives(const std::vector<std::string>& texts, std::uint32_t members,
                                 std::uint64_t bytes) {
    DriveChoice choice;
    WARPRAID_ASSERT(!texts.empty());
    choice.text = fmt::format("{}", fmt::join(texts, ","));
    const std::string& first = texts.front();
    const std::size_t colon = first.find(':');
    const std::string word = first.substr(0, colon);
    const std::string rest = colon == std::string::npos ? "" : first.substr(colon + 1);
    if (texts.size() == 1 && (word == "ram" || word == "null")) {
        choice.kind = word == "ram" ? Kind::kRam : Kind::kNull;
        if (colon != std::string::npos) WARPRAID_TRY(parse_count(rest, choice));
    } else if (texts.size() == 1 && word == "file" && !rest.empty()) {
        choice.kind = Kind::kFiles;
        choice.directory = rest;
    } else {
        choice.kind = Kind::kPaths;
        choice.paths = texts;
        choice.count = static_cast<std::uint32_t>(texts.size());
    }
    if (choice.count != 0 && members != 0 && choice.count != members) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("--drives names {} drives and --members {}; leave one out",
                                 choice.count, members)};
    }
    if (choice.count == 0) choice.count = members != 0 ? members : kMembersDefault;
    if (choice.bytes == 0) choice.bytes = bytes != 0 ? bytes : default_bytes(choice.kind);
    return choice;
}

Result<std::unique_ptr<DriveSet>> DriveSet::open(const DriveChoice& choice,
                                                 std::uint32_t block_bytes) {
    std::unique_ptr<DriveSet> set(new DriveSet());
    set->choice_ = choice;
    set->block_bytes_ = block_bytes;
    std::vector<std::string> paths = choice.paths;
    for (std::uint32_t i = 0; i < choice.count; ++i) {
        if (choice.kind == Kind::kRam) {
            set->stores_.push_back(
                io::make_ram_store(fmt::format("RAM{}", i), choice.bytes, block_bytes));
        } else if (choice.kind == Kind::kFiles) {
            paths.push_back(fmt::format("{}/warpraid-bench-{}.img", choice.directory, i));
            WARPRAID_TRY(make_file(paths.back(), choice.bytes));
            set->made_files_.push_back(paths.back());
        }
    }
    if (paths.empty()) return set;
    set->provider_ = io::uring::make_drive_provider();
    for (const std::string& path : paths) {
        WARPRAID_TRY_ASSIGN(auto device, set->provider_->open(path, io::OpenMode::kExclusive));
        set->devices_.push_back(std::move(device));
        set->block_bytes_ =
            std::max(set->block_bytes_, set->devices_.back()->limits().logical_block_bytes);
    }
    return set;
}

DriveSet::~DriveSet() {
    devices_.clear();
    for (const std::string& path : made_files_) ::unlink(path.c_str());
}

std::uint64_t DriveSet::bytes() const {
    std::uint64_t smallest = devices_.empty() ? choice_.bytes : ~std::uint64_t{0};
    for (const auto& device : devices_) smallest = std::min(smallest, device->limits().size_bytes);
    return smallest;
}

std::uint32_t DriveSet::block_bytes() const {
    return block_bytes_;
}

Result<std::unique_ptr<io::Reactor>> DriveSet::make_reactor(const Clock& clock,
                                                            io::BufferArena& arena,
                                                            bool with_sockets) {
    if (devices_.empty() && !with_sockets) {
        return std::unique_ptr<io::Reactor>(std::make_unique<io::ManualReactor>(clock));
    }
    io::uring::ReactorOptions options;
    options.arena = &arena;
    return io::uring::make_reactor(clock, options);
}

Result<std::vector<std::unique_ptr<io::Drive>>> DriveSet::bind(io::Reactor& reactor) {
    std::vector<std::unique_ptr<io::Drive>> drives;
    for (const auto& store : stores_) drives.push_back(io::make_ram_drive(store, reactor));
    for (const auto& device : devices_) {
        WARPRAID_TRY_ASSIGN(auto drive, provider_->bind(*device, reactor, 0));
        drives.push_back(std::move(drive));
    }
    while (drives.size() < choice_.count) {
        drives.push_back(io::make_null_drive(choice_.bytes, block_bytes_, reactor));
    }
    return drives;
}

}  // namespace warpraid::bench
