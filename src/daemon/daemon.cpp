#include "daemon/daemon.h"

#include <sys/resource.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "api/server.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "control/service.h"
#include "daemon/data_shard.h"
#include "daemon/lock.h"
#include "daemon/notify.h"
#include "daemon/signals.h"
#include "daemon/sockets.h"
#include "export/nbd/server.h"
#include "io/uring/provider.h"

namespace warpraid::daemon {

namespace {

constexpr unsigned kStateDirectoryMode = 0750;

/// An API server with the thread that runs it.
class ApiThread {
  public:
    static Result<std::unique_ptr<ApiThread>> start(control::Service& service,
                                                    ListeningSocket& socket, const Clock& clock,
                                                    bool read_only) {
        WARPRAID_TRY_ASSIGN(auto server, api::Server::make(service, socket.take(), clock,
                                                           {.read_only = read_only}));
        return std::unique_ptr<ApiThread>(new ApiThread(std::move(server)));
    }
    ~ApiThread() {
        server_->stop();
        thread_.join();
    }
    ApiThread(const ApiThread&) = delete;
    ApiThread& operator=(const ApiThread&) = delete;

  private:
    explicit ApiThread(std::unique_ptr<api::Server> server)
        : server_(std::move(server)), thread_([this] { server_->run(); }) {}
    std::unique_ptr<api::Server> server_;
    std::thread thread_;
};

struct Sockets {
    ListeningSocket control, read_only, nbd;
    UniqueFd nbd_tcp;

    static Result<Sockets> make(const Options& options) {
        WARPRAID_TRY_ASSIGN(const int group_id, find_group_id(options.socket_group));
        WARPRAID_TRY_ASSIGN(auto control, ListeningSocket::make(options.socket_path, group_id));
        WARPRAID_TRY_ASSIGN(auto read_only,
                            ListeningSocket::make(options.readonly_socket_path, group_id));
        WARPRAID_TRY_ASSIGN(auto nbd, ListeningSocket::make(options.nbd_socket_path, group_id));
        UniqueFd tcp;
        if (!options.nbd_tcp.empty()) {
            WARPRAID_TRY_ASSIGN(const TcpAddress address, parse_tcp_address(options.nbd_tcp));
            WARPRAID_TRY_ASSIGN(tcp, listen_patiently([&] {
                                    return nbd::listen_tcp(address.address, address.port);
                                }));
            if (!address.address.starts_with("127.") && address.address != "::1") {
                log_warning("NBD is served on " + options.nbd_tcp +
                            ": anybody who reaches it may read and write every volume");
            }
        }
        return Sockets{std::move(control), std::move(read_only), std::move(nbd), std::move(tcp)};
    }
};

/// Every drive and every client takes a descriptor; the usual soft limit of 1024 is too low.
void raise_descriptor_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        log_warning("cannot raise the limit of open files");
    }
}

control::ServiceOptions service_options(const Options& options, const std::string& host_name) {
    control::ServiceOptions service;
    service.state_directory = options.state_directory;
    service.drive_patterns = options.drive_patterns;
    // It becomes part of addresses that clients use from any directory.
    service.nbd_socket_path = std::filesystem::absolute(options.nbd_socket_path).string();
    service.command_timeout_ns = options.command_timeout_seconds * kNanosecondsPerSecond;
    service.read_errors_max = static_cast<std::uint32_t>(options.read_errors_max);
    service.rebuild_bytes_per_second_max = options.rebuild_bytes_per_second_max;
    service.absent_grace_ns = options.absent_grace_seconds * kNanosecondsPerSecond;
    service.bitmap_delay_ns = options.bitmap_delay_seconds * kNanosecondsPerSecond;
    service.host_name = host_name;
    return service;
}

/// Serves until a signal asks to stop.
Status serve(control::Service& service, DataShard& shard, Sockets& sockets, StopSignals& signals,
             const std::string& notify_socket, const Clock& clock) {
    shard.listen(sockets.nbd.take());
    if (sockets.nbd_tcp) shard.listen(std::move(sockets.nbd_tcp));
    WARPRAID_TRY_ASSIGN(const auto control,
                        ApiThread::start(service, sockets.control, clock, false));
    WARPRAID_TRY_ASSIGN(const auto read_only,
                        ApiThread::start(service, sockets.read_only, clock, true));
    std::fputs("warpraidd: ready\n", stdout);
    std::fflush(stdout);
    notify(notify_socket, "READY=1");
    const int signal = signals.wait();
    log_info(std::string("stopping on signal ") + std::to_string(signal));
    notify(notify_socket, "STOPPING=1");
    return success();
}

}  // namespace

Status run(const Options& options, const Surroundings& surroundings) {
    StopSignals signals;
    raise_descriptor_limit();
    WARPRAID_TRY(make_directory(options.state_directory, kStateDirectoryMode));
    WARPRAID_TRY_ASSIGN(const UniqueFd lock, lock_directory(options.state_directory));
    WARPRAID_TRY_ASSIGN(Sockets sockets, Sockets::make(options));
    const SystemClock clock;
    SystemRandom random;
    const std::unique_ptr<io::DriveProvider> provider = io::uring::make_drive_provider();
    WARPRAID_TRY_ASSIGN(const std::unique_ptr<DataShard> shard,
                        DataShard::start({.engine_arena_bytes = options.engine_arena_bytes,
                                          .nbd_arena_bytes = options.nbd_arena_bytes,
                                          .register_buffers = options.register_buffers},
                                         clock));
    WARPRAID_TRY_ASSIGN(const std::unique_ptr<control::Service> service,
                        control::make_service(service_options(options, surroundings.host_name),
                                              *provider, shard->shard(), clock, random));
    const Status served =
        serve(*service, *shard, sockets, signals, surroundings.notify_socket, clock);
    // The API is gone: no command can come between. Whatever fails, groups are left in order.
    service->shut_down();
    return served;
}

}  // namespace warpraid::daemon
