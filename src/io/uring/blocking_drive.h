// The control-plane face of a block device or plain file: blocking calls on one descriptor, which
// the data-path faces share.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/unique_fd.h"
#include "io/drive.h"

namespace warpraid::io::uring {

class UringBlockingDrive final : public BlockingDrive {
  public:
    static Result<std::unique_ptr<UringBlockingDrive>> open(const std::string& path, OpenMode mode);

    const DriveIdentity& identity() const override { return identity_; }
    const DriveLimits& limits() const override { return limits_; }
    Status read(std::uint64_t offset, std::span<std::byte> to) override;
    Status write(std::uint64_t offset, std::span<const std::byte> from) override;
    Status flush() override;
    Status probe() override;

    int fd() const { return fd_.get(); }
    OpenMode mode() const { return mode_; }
    /// As it was opened.
    const struct stat& status() const { return status_; }
    /// The file system refused O_DIRECT, so reads and writes go through the page cache.
    bool is_buffered() const { return is_buffered_; }

  private:
    UringBlockingDrive() = default;
    Status check_range(std::uint64_t offset, std::uint64_t length) const;
    Error io_failure(const char* what, std::uint64_t offset, int error) const;

    UniqueFd fd_;
    struct stat status_{};
    DriveIdentity identity_;
    DriveLimits limits_;
    OpenMode mode_ = OpenMode::kReadOnly;
    bool is_buffered_ = false;
};

}  // namespace warpraid::io::uring
