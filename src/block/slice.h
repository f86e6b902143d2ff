// A volume: a contiguous slice of a group's address space, itself a block device.
#pragma once

#include "block/device.h"

namespace warpraid::block {

class Slice final : public Device {
  public:
    /// `start` and `size_bytes` lie inside `base`, which must outlive this.
    Slice(Device& base, std::uint64_t start, std::uint64_t size_bytes);

    const Limits& limits() const override { return limits_; }
    /// Moves `request.offset` into the base; the submitter must not rely on it afterwards.
    void submit(Request& request) override;
    void reject(Request& request, int error) override { base_.reject(request, error); }

  private:
    Device& base_;
    std::uint64_t start_;
    Limits limits_;
};

}  // namespace warpraid::block
