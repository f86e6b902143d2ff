// A host that writes and reads a window of a device at random, several requests at once, and checks
// every answer against the model. Belongs to the world's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "block/device.h"
#include "sim/model.h"

namespace warpraid::sim {

class Host {
  public:
    /// Uses `blocks` blocks from `offset` on.
    Host(SeededRandom& random, std::uint64_t offset, std::uint64_t blocks,
         std::uint32_t block_bytes);
    ~Host();

    /// The device to use from now on; null while there is none. Requests that are under way to the
    /// one before must have ended.
    void use(block::Device* device) { device_ = device; }
    /// Sends requests until so many are under way.
    void send(std::uint32_t depth);
    /// Reads all of the window, in pieces; false while one is under way.
    bool read_all();
    std::size_t in_flight() const { return in_flight_; }
    std::uint64_t sent() const { return sent_; }
    /// The host is gone with the machine: nobody hears what is answered to requests under way.
    void stop() {
        device_ = nullptr;
        is_gone_ = true;
    }
    /// It is back, when all of these have ended, and knows what it knew.
    void come_back();
    const std::optional<std::string>& problem() const { return problem_; }

  private:
    struct Call;
    void start(Call& call, block::Operation operation, std::uint64_t first, std::uint64_t count);
    void end(Call& call);
    Call* free_call();
    bool is_free(std::uint64_t first, std::uint64_t count, bool for_writing) const;
    void send_one(Call& call);

    SeededRandom& random_;
    std::uint64_t offset_;
    Model model_;
    block::Device* device_ = nullptr;
    std::vector<std::unique_ptr<Call>> calls_;
    std::size_t in_flight_ = 0;
    std::uint64_t sent_ = 0;
    std::uint64_t next_to_read_ = 0;
    bool is_gone_ = false;
    std::optional<std::string> problem_;
};

}  // namespace warpraid::sim
