// What the tests of this folder share: temporary files as drives, a loop that runs until a
// condition holds, and commands that remember that they were completed.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "io/drive.h"
#include "io/reactor.h"
#include "io/uring/provider.h"

namespace warpraid::io::uring {

/// A sparse file that disappears with the object.
class TemporaryFile {
  public:
    explicit TemporaryFile(std::uint64_t size) {
        std::string pattern = testing::TempDir() + "warpraid-io-XXXXXX";
        const UniqueFd fd(mkstemp(pattern.data()));
        EXPECT_TRUE(fd);
        EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(size)), 0);
        path_ = pattern;
    }
    ~TemporaryFile() { unlink(path_.c_str()); }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    const std::string& path() const { return path_; }
    void rename_to(const std::string& path) {
        EXPECT_EQ(rename(path_.c_str(), path.c_str()), 0);
        path_ = path;
    }

  private:
    std::string path_;
};

/// Memory aligned for O_DIRECT.
class AlignedBytes {
  public:
    explicit AlignedBytes(std::size_t size)
        : data_(static_cast<std::byte*>(std::aligned_alloc(4096, (size + 4095) / 4096 * 4096))),
          size_(size) {}
    ~AlignedBytes() { std::free(data_); }
    AlignedBytes(const AlignedBytes&) = delete;
    AlignedBytes& operator=(const AlignedBytes&) = delete;
    std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }
    std::byte& operator[](std::size_t index) const { return data_[index]; }
    iovec part(std::size_t offset, std::size_t length) const { return {data_ + offset, length}; }
    void fill(unsigned seed) const {
        for (std::size_t i = 0; i < size_; ++i) {
            data_[i] = static_cast<std::byte>((i * 31 + i / 512 * 7 + seed) & 0xff);
        }
    }
    bool operator==(const AlignedBytes& other) const {
        return std::equal(data_, data_ + size_, other.data_, other.data_ + other.size_);
    }

  private:
    std::byte* data_;
    std::size_t size_;
};

struct TestCommand : Command {
    bool done = false;
    std::vector<iovec> parts;

    TestCommand() {
        complete = [](Command& command) { static_cast<TestCommand&>(command).done = true; };
    }
    TestCommand(Opcode what, std::uint64_t at, std::vector<iovec> memory) : TestCommand() {
        opcode = what;
        offset = at;
        parts = std::move(memory);
        segments = parts;
        for (const iovec& part : parts) length_bytes += part.iov_len;
    }
    TestCommand(const TestCommand&) = delete;
    TestCommand& operator=(const TestCommand&) = delete;
};

inline std::unique_ptr<Reactor> make_test_reactor(std::uint32_t entries = 256,
                                                  BufferArena* arena = nullptr) {
    static const SystemClock clock;
    ReactorOptions options;
    options.ring_entries = entries;
    options.arena = arena;
    auto reactor = make_reactor(clock, options);
    EXPECT_TRUE(reactor.ok()) << reactor.error().message;
    return std::move(reactor).value();
}

/// Turns the loop until `condition` holds; false after `seconds` without it.
inline bool run_until(Reactor& reactor, const std::function<bool()>& condition,
                      unsigned seconds = 20) {
    const SystemClock clock;
    const std::uint64_t end = clock.monotonic_ns() + seconds * kNanosecondsPerSecond;
    while (!condition()) {
        if (clock.monotonic_ns() > end) return false;
        reactor.run_once(10 * kNanosecondsPerMillisecond);
    }
    return true;
}

/// Submits and waits; returns the command's error, or -1 when it never completed.
inline int execute(Reactor& reactor, Drive& drive, TestCommand& command) {
    command.done = false;
    drive.submit(command);
    EXPECT_FALSE(command.done) << "completed inside submit()";
    return run_until(reactor, [&] { return command.done; }) ? command.error : -1;
}

}  // namespace warpraid::io::uring
