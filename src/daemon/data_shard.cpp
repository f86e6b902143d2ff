#include "daemon/data_shard.h"

#include <cstring>
#include <string>

#include "base/log.h"
#include "export/nbd/server.h"
#include "io/uring/provider.h"
#include "parity/cpu/isal_coder.h"

namespace warpraid::daemon {

namespace {

/// The longest sleep of an idle loop: what a throttled rebuild may be late by.
constexpr std::uint64_t kIdleWaitNs = 20 * kNanosecondsPerMillisecond;
constexpr std::uint32_t kConnectionsMax = 256;

void log_reactor(const io::Reactor& reactor, const parity::Coder& coder, bool wanted_buffers) {
    const io::uring::ReactorInfo info = io::uring::describe(reactor);
    log_info(std::string("data thread: parity coder ") + std::string(coder.name()) +
             (info.deferred_task_run ? ", deferred completions" : "") +
             (info.registered_files ? ", registered files" : "") +
             (info.registered_buffers ? ", registered buffers" : ""));
    if (wanted_buffers && !info.registered_buffers) {
        log_warning(std::string("the kernel does not register the buffers: ") +
                    std::strerror(info.buffers_error) +
                    "; raise the memory lock limit (LimitMEMLOCK=)");
    }
}

Result<std::unique_ptr<io::BufferArena>> make_arena(const std::string& setting,
                                                    std::uint64_t bytes) {
    auto arena = io::BufferArena::make(bytes);
    if (arena.ok()) return arena;
    return Error{arena.error().code, arena.error().message + "; give " + setting +
                                         " less, or the daemon more memory to use"};
}

}  // namespace

Result<std::unique_ptr<DataShard>> DataShard::start(const DataShardOptions& options,
                                                    const Clock& clock) {
    std::unique_ptr<DataShard> shard(new DataShard(clock));
    WARPRAID_TRY_ASSIGN(shard->engine_arena_,
                        make_arena("engine-arena", options.engine_arena_bytes));
    WARPRAID_TRY_ASSIGN(shard->nbd_arena_, make_arena("nbd-arena", options.nbd_arena_bytes));
    shard->thread_ =
        std::thread([running = shard.get(), options] { running->thread_main(options); });
    std::unique_lock lock(shard->mutex_);
    shard->started_.wait(lock, [&] { return shard->start_status_.has_value(); });
    if (!shard->start_status_->ok()) return shard->start_status_->error();
    lock.unlock();
    return shard;
}

void DataShard::announce(Status status) {
    const std::lock_guard lock(mutex_);
    start_status_ = std::move(status);
    started_.notify_one();
}

void DataShard::thread_main(const DataShardOptions& options) {
    // Everything is made here: the ring belongs to the thread that made it.
    io::uring::ReactorOptions reactor_options;
    if (options.register_buffers) reactor_options.arena = nbd_arena_.get();
    Result<std::unique_ptr<io::Reactor>> made = io::uring::make_reactor(clock_, reactor_options);
    if (!made.ok()) return announce(made.error());
    const std::unique_ptr<io::Reactor> reactor = std::move(made).value();
    const std::unique_ptr<parity::Coder> coder = parity::make_isal_coder();
    nbd::ServerOptions server_options;
    server_options.connections_max = kConnectionsMax;
    nbd::Server server(server_options, *reactor, *nbd_arena_);
    log_reactor(*reactor, *coder, options.register_buffers);
    shard_.reactor = reactor.get();
    shard_.engine_arena = engine_arena_.get();
    shard_.coder = coder.get();
    shard_.nbd_server = &server;
    announce(success());
    while (!stopping_) reactor->run_once(kIdleWaitNs);
    server.shut_down();
    while (!server.idle()) reactor->run_once(kIdleWaitNs);
}

void DataShard::listen(UniqueFd listener) {
    shard_.run([&] { shard_.nbd_server->listen(std::move(listener)); });
}

DataShard::~DataShard() {
    if (!thread_.joinable()) return;
    const bool is_running = start_status_.has_value() && start_status_->ok();
    if (is_running) shard_.run([this] { stopping_ = true; });
    thread_.join();
}

}  // namespace warpraid::daemon
