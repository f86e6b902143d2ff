// The volumes of one group: partitions of a GUID partition table, kept in memory and written
// through the engine. Both copies are written in an order that leaves one valid at any moment.
// Under the service's lock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "control/device_io.h"
#include "format/gpt.h"
#include "geometry/layout.h"

namespace warpraid::control {

class Volumes {
  public:
    Volumes(const geometry::Layout& layout, DeviceIo io, Random& random);

    /// Reads the table; an address space without one gets none before the first volume is made.
    /// kBadPartitionTable when there is one that cannot be understood: nothing is changed then.
    Status load();
    /// Writes an empty table over whatever is there: for a new group.
    Status format();

    const std::vector<format::Partition>& list() const { return table_.partitions; }
    /// By entry number, name or uuid. kNotFound, kBadPartitionTable; kInvalidArgument when several
    /// fit: others may have named two alike.
    Result<format::Partition> find(const std::string& name) const;
    /// Whatever others may be called. kNotFound, kBadPartitionTable.
    Result<format::Partition> find_uuid(const std::string& uuid) const;
    std::uint64_t free_bytes() const;
    std::uint64_t used_bytes() const;

    struct Request {
        std::string name;  // empty: "vd<id>"; with count > 1 a prefix
        std::uint64_t size_bytes = 0;
        std::uint32_t count = 1;
    };
    /// All or nothing. kNoSpace, kBadSize, kBadName, kAlreadyExists, kLimitReached.
    Result<std::vector<format::Partition>> create(const Request& request);
    /// Whether create() would be refused; nothing is written.
    Status check(const Request& request) const;
    Status remove(std::uint32_t index);
    Status rename(std::uint32_t index, const std::string& name);

  private:
    Status check_usable() const;
    Result<format::PartitionTable> plan(const Request& request) const;
    Result<std::uint64_t> size_of_each(const Request& request) const;
    Status place(format::PartitionTable& table, std::uint64_t size_bytes, std::string name) const;
    Status store(const format::PartitionTable& table);

    geometry::Layout layout_;
    format::GptDisk disk_;
    std::uint64_t alignment_;
    DeviceIo io_;
    Random& random_;
    format::PartitionTable table_;
    std::optional<Error> problem_;
};

/// Whether a volume is called that by number, or by name or uuid.
bool is_called(const format::Partition& volume, const std::string& name);

/// Letters, digits and "._-:+@", not starting with '-' or '.', not a number: kBadName says so.
Status check_name(const std::string& name, std::size_t bytes_max);

}  // namespace warpraid::control
