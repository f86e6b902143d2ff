// Loop devices and a file system that can be frozen, for tests that run as root; others skip.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/unique_fd.h"
#include "io/uring/uring_test_support.h"

namespace warpraid::io::uring {

/// The standard output of a shell command without its last newline; empty when it failed.
inline std::string output_of(const std::string& command) {
    std::string text;
    FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
    if (pipe == nullptr) return text;
    std::array<char, 256> line;
    while (fgets(line.data(), static_cast<int>(line.size()), pipe) != nullptr) text += line.data();
    if (pclose(pipe) != 0) return {};
    if (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

/// A loop device over `backing`; `path()` is empty when this machine has none for us.
class LoopDevice {
  public:
    LoopDevice(const std::string& backing, unsigned block_bytes, bool read_only = false) {
        // Another test may take the free device that was found: look again.
        for (int attempt = 0; attempt < 5 && path_.empty() && geteuid() == 0; ++attempt) {
            path_ = output_of("losetup --find --show " + std::string(read_only ? "-r " : "") +
                              "--sector-size " + std::to_string(block_bytes) + " " + backing);
        }
    }
    ~LoopDevice() {
        if (!path_.empty()) output_of("losetup --detach " + path_ + " && echo done");
    }
    LoopDevice(const LoopDevice&) = delete;
    LoopDevice& operator=(const LoopDevice&) = delete;
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

/// An open file on a small file system of its own, which can be frozen: whatever writes to it then
/// hangs in the kernel and cannot be called back.
class FrozenFile {
  public:
    FrozenFile() : image_(64 * 1024 * 1024) {
        if (geteuid() != 0) {
            problem_ = "only root can mount and freeze a file system";
            return;
        }
        folder_ = testing::TempDir() + "warpraid-frozen-XXXXXX";
        if (output_of("mkfs.ext4 -q -F " + image_.path() + " && echo done").empty() ||
            mkdtemp(folder_.data()) == nullptr ||
            output_of("mount -o loop " + image_.path() + " " + folder_ + " && echo done").empty()) {
            problem_ = "cannot mount a file system of our own here";
            return;
        }
        is_mounted_ = true;
        fd_.reset(open((folder_ + "/drive").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        if (!fd_ || ftruncate(fd_.get(), 1024 * 1024) != 0) problem_ = "cannot make a file";
    }
    ~FrozenFile() {
        if (is_frozen_) thaw();
        fd_.reset();
        if (is_mounted_) umount2(folder_.c_str(), MNT_DETACH);
        if (!folder_.empty()) rmdir(folder_.c_str());
    }
    FrozenFile(const FrozenFile&) = delete;
    FrozenFile& operator=(const FrozenFile&) = delete;

    /// Why there is none; empty when there is.
    const std::string& problem() const { return problem_; }
    int fd() const { return fd_.get(); }
    void freeze() {
        EXPECT_EQ(ioctl(fd_.get(), FIFREEZE, 0), 0);
        is_frozen_ = true;
    }
    void thaw() {
        EXPECT_EQ(ioctl(fd_.get(), FITHAW, 0), 0);
        is_frozen_ = false;
    }

  private:
    TemporaryFile image_;
    std::string problem_;
    std::string folder_;
    UniqueFd fd_;
    bool is_mounted_ = false;
    bool is_frozen_ = false;
};

}  // namespace warpraid::io::uring
