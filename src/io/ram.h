// Drives without hardware: RAM for benchmarks and tests, null for measuring everything but the
// drives, and a fault wrapper for tests. All complete on the reactor's completion phase like real
// ones. Data-path and blocking faces share the same bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "io/drive.h"

namespace warpraid::io {

/// Bytes in memory that outlive both faces. `size_bytes` 0-filled at start, pages on first touch.
class RamStore;
std::shared_ptr<RamStore> make_ram_store(const std::string& serial, std::uint64_t size_bytes,
                                         std::uint32_t block_bytes);
/// The raw bytes, for tests that look behind the product's back.
std::byte* ram_bytes(RamStore& store);
std::unique_ptr<BlockingDrive> make_ram_blocking_drive(std::shared_ptr<RamStore> store);
std::unique_ptr<Drive> make_ram_drive(std::shared_ptr<RamStore> store, Reactor& reactor);
/// Completes at once and moves nothing.
std::unique_ptr<Drive> make_null_drive(std::uint64_t size_bytes, std::uint32_t block_bytes,
                                       Reactor& reactor);

/// Decides each command's fate: 0 passes it on, an errno fails it before it reaches the drive.
using FaultFunction = std::function<int(const Command&)>;
std::unique_ptr<Drive> make_faulty_drive(std::unique_ptr<Drive> inner, Reactor& reactor,
                                         FaultFunction fault);

}  // namespace warpraid::io
