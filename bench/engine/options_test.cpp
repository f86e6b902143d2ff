#include "engine/options.h"

#include <gtest/gtest.h>

namespace warpraid::bench {
namespace {

Result<Config> config_with_parity(const std::string& parity) {
    Flags flags;
    flags.parity = parity;
    return make_config(flags);
}

TEST(Parity, auto_takes_the_cpu_while_there_is_nothing_else) {
    for (const char* parity : {"cpu", "auto"}) {
        const Result<Config> config = config_with_parity(parity);
        ASSERT_TRUE(config.ok()) << config.error().message;
        EXPECT_EQ(config->group.parity, "cpu");
    }
    EXPECT_EQ(config_with_parity("reference")->group.parity, "reference");
}

TEST(Parity, a_gpu_is_refused_with_what_to_say_instead) {
    const Result<Config> config = config_with_parity("gpu");
    ASSERT_FALSE(config.ok());
    EXPECT_EQ(config.error().code, ErrorCode::kNotSupported);
    for (const char* part : {"no GPU coder", "cpu or auto"}) {
        EXPECT_NE(config.error().message.find(part), std::string::npos) << config.error().message;
    }
    EXPECT_EQ(config.error().message.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace warpraid::bench
