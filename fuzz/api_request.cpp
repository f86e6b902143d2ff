// Feeds arbitrary requests to the API: the first byte picks the method, the first line is the
// address, the rest is the body. The service behind it does nothing. Whatever comes in, the answer
// is JSON with a status of the error table.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/routes.h"
#include "api/service_test_support.h"
#include "base/assert.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace warpraid;
    static constexpr std::array<std::string_view, 5> kMethods = {"GET", "POST", "PATCH", "DELETE",
                                                                 "PUT"};
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    const std::size_t line_end = text.find('\n');
    api::FakeService service;
    const api::Answer answer = api::handle(
        service, {.method = kMethods[data[0] % kMethods.size()],
                  .target = text.substr(0, line_end),
                  .body = line_end == std::string_view::npos ? "" : text.substr(line_end + 1)});
    WARPRAID_ASSERT(answer.http_status >= 200 && answer.http_status < 600);
    WARPRAID_ASSERT(answer.body.starts_with('{') && answer.body.ends_with("}\n"));
    WARPRAID_ASSERT((answer.http_status == 200) == !answer.body.starts_with("{\"error\""));
    return 0;
}
