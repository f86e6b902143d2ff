#include "engine/serve.h"

#include <csignal>
#include <utility>

#include "base/units.h"
#include "export/nbd/server.h"

namespace warpraid::bench {

namespace {

constexpr std::uint64_t kArenaBytes = 256 * kMiB;

volatile std::sig_atomic_t stop_requested = 0;

void request_stop(int) {
    stop_requested = 1;
}

}  // namespace

Status serve(Rig& rig, const std::string& socket_path) {
    WARPRAID_TRY_ASSIGN(const auto arena, io::BufferArena::make(kArenaBytes));
    nbd::Server server(nbd::ServerOptions{}, rig.reactor(), *arena);
    nbd::ExportInfo info;
    info.name = "bench";
    info.description = "a group of warpraid-bench";
    info.device = &rig.engine();
    server.add_export(info);
    WARPRAID_TRY_ASSIGN(UniqueFd listener, nbd::listen_unix(socket_path, 0600, -1));
    server.listen(std::move(listener));
    std::signal(SIGTERM, request_stop);
    std::signal(SIGINT, request_stop);
    while (stop_requested == 0) rig.turn();
    server.shut_down();
    while (!server.idle()) rig.turn();
    return success();
}

}  // namespace warpraid::bench
