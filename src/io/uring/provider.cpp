#include "io/uring/provider.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/assert.h"
#include "io/uring/blocking_drive.h"
#include "io/uring/drive.h"
#include "io/uring/reactor.h"
#include "io/uring/stacking.h"

namespace warpraid::io::uring {
namespace {

bool may_be_drive(const char* path) {
    struct stat status{};
    return stat(path, &status) == 0 && (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode));
}

class UringDriveProvider final : public DriveProvider {
  public:
    Result<std::unique_ptr<BlockingDrive>> open(const std::string& path, OpenMode mode) override {
        WARPRAID_TRY_ASSIGN(auto drive, UringBlockingDrive::open(path, mode));
        return std::unique_ptr<BlockingDrive>(std::move(drive));
    }

    Result<std::unique_ptr<Drive>> bind(BlockingDrive& drive, Reactor& reactor,
                                        std::uint64_t command_timeout_ns) override {
        auto* ours = dynamic_cast<UringBlockingDrive*>(&drive);
        auto* loop = dynamic_cast<UringReactor*>(&reactor);
        WARPRAID_ASSERT(ours != nullptr && loop != nullptr);
        UringDriveOptions options;
        options.fd = ours->fd();
        options.limits = ours->limits();
        if (ours->mode() == OpenMode::kReadOnly) options.limits.read_only = true;
        options.command_timeout_ns = command_timeout_ns;
        return std::unique_ptr<Drive>(std::make_unique<UringDrive>(*loop, options));
    }

    bool share_storage(const BlockingDrive& first, const BlockingDrive& second) override {
        const auto* one = dynamic_cast<const UringBlockingDrive*>(&first);
        const auto* other = dynamic_cast<const UringBlockingDrive*>(&second);
        WARPRAID_ASSERT(one != nullptr && other != nullptr);
        return uring::share_storage(one->status(), other->status());
    }

    std::vector<std::string> list(std::span<const std::string> patterns) override {
        std::vector<std::string> paths;
        for (const std::string& pattern : patterns) {
            glob_t found{};
            if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
                for (std::size_t i = 0; i < found.gl_pathc; ++i) {
                    if (may_be_drive(found.gl_pathv[i])) paths.emplace_back(found.gl_pathv[i]);
                }
            }
            globfree(&found);
        }
        std::sort(paths.begin(), paths.end());
        paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
        return paths;
    }
};

}  // namespace

std::unique_ptr<DriveProvider> make_drive_provider() {
    return std::make_unique<UringDriveProvider>();
}

}  // namespace warpraid::io::uring
