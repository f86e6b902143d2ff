// For tests: a directory that goes with the test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace warpraid::daemon {

struct InDirectory : testing::Test {
    std::string path;
    void SetUp() override {
        path = testing::TempDir() + "warpraid-daemon-XXXXXX";
        ASSERT_NE(mkdtemp(path.data()), nullptr);
    }
    void TearDown() override { std::filesystem::remove_all(path); }
};

}  // namespace warpraid::daemon
