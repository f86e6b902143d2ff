// Feeds arbitrary bytes to the reader of HTTP requests, once in pieces whose sizes the first byte
// gives and once as a whole: how a client's bytes are cut on their way must not matter. The first
// byte's top bit makes the server a read-only one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/http.h"
#include "base/assert.h"
#include "base/limits.h"

namespace {

using warpraid::api::RequestReader;

/// What a reader made of the bytes.
std::string outcome(RequestReader& reader) {
    if (!reader.is_done()) reader.end();
    WARPRAID_ASSERT(reader.is_done());
    if (reader.state() == RequestReader::State::kRefused) {
        const warpraid::api::Answer& refusal = reader.refusal();
        WARPRAID_ASSERT(refusal.http_status >= 400 && refusal.http_status < 600);
        WARPRAID_ASSERT(refusal.body.starts_with("{\"error\""));
        return "refused " + std::to_string(refusal.http_status);
    }
    const warpraid::api::Request request = reader.request();
    WARPRAID_ASSERT(request.body.size() <= warpraid::limits::kHttpBodyBytesMax);
    std::string text(request.method);
    return text.append("\n").append(request.target).append("\n").append(request.body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    const bool read_only = (data[0] & 0x80) != 0;
    const std::size_t step = std::max<std::size_t>(data[0] & 0x7f, 1);
    RequestReader whole(read_only);
    whole.push(bytes);
    RequestReader pieces(read_only);
    for (std::size_t at = 0; at < bytes.size(); at += step) pieces.push(bytes.substr(at, step));
    WARPRAID_ASSERT(outcome(whole) == outcome(pieces));
    return 0;
}
