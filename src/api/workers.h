// Threads that carry out what they are given, in order, and a list of what is done.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace warpraid::api {

class ServerClient;

class Workers {
  public:
    /// `work` runs on the workers; so does `done`, after each piece of it.
    Workers(unsigned threads, std::function<void(ServerClient&)> work, std::function<void()> done);
    ~Workers() { stop(); }
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    /// The client belongs to a worker until take_done() returns it.
    void give(ServerClient& client);
    std::vector<ServerClient*> take_done();
    /// What has begun is finished, what waits is forgotten.
    void stop();

  private:
    void run();

    const std::function<void(ServerClient&)> work_;
    const std::function<void()> done_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<ServerClient*> waiting_;
    std::vector<ServerClient*> finished_;
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace warpraid::api
