// Feeds arbitrary text as a configuration file. Whatever it says, the settings are complete
// afterwards, or the refusal has the code of a bad configuration.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "daemon/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace warpraid;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    daemon::Options options;
    const Status status = daemon::apply_config(options, text, "fuzz.toml");
    if (!status.ok()) {
        WARPRAID_ASSERT(status.error().code == ErrorCode::kBadConfig);
        WARPRAID_ASSERT(!status.error().message.empty());
        return 0;
    }
    if (daemon::fill_in(options).ok()) {
        WARPRAID_ASSERT(options.shards == 1);
        WARPRAID_ASSERT(!options.nbd_socket_path.empty() && !options.state_directory.empty());
        WARPRAID_ASSERT(options.nbd_tcp.empty() || daemon::parse_tcp_address(options.nbd_tcp).ok());
    }
    return 0;
}
