// The exports of one server, and what negotiation may know of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "block/device.h"
#include "export/nbd/server.h"

namespace warpraid::nbd {

/// What a client is told about an export.
struct ExportOffer {
    std::string_view name;
    std::string_view description;
    std::uint64_t size_bytes = 0;
    std::uint32_t block_bytes_min = 1;
    std::uint32_t block_bytes_preferred = 4096;
    std::uint32_t block_bytes_max = 0;
    bool read_only = false;
};

/// The transmission flags of an export, exactly what the server honours.
std::uint16_t transmission_flags(const ExportOffer& offer, bool structured_replies);

class ExportDirectory {
  public:
    virtual ~ExportDirectory() = default;
    /// The empty name means the only export when there is exactly one.
    virtual std::optional<ExportOffer> find_offer(std::string_view name) const = 0;
    /// The first one behind `name` in the order of names; null starts from the beginning.
    virtual std::optional<ExportOffer> offer_after(const std::string* name) const = 0;
};

struct Export {
    ExportInfo info;
    block::Limits limits;  // the device's, narrowed by this server's own
    std::uint32_t connections = 0;
    bool removing = false;
    std::vector<std::function<void()>> removed;
};

class ExportTable final : public ExportDirectory {
  public:
    /// `request_bytes_max`: the longest request a buffer can be found for.
    explicit ExportTable(std::uint64_t request_bytes_max) : request_bytes_max_(request_bytes_max) {}

    void add(const ExportInfo& info);
    /// One that is not being removed, as find_offer; null when there is none.
    Export* find(std::string_view name);
    /// By its exact name, also while it is being removed.
    Export* find_exact(std::string_view name);
    /// Forgets exports that are being removed and have no connections; returns their callbacks.
    std::vector<std::function<void()>> take_removed();
    bool has_removals() const;

    std::optional<ExportOffer> find_offer(std::string_view name) const override;
    std::optional<ExportOffer> offer_after(const std::string* name) const override;

  private:
    const Export* find_present(std::string_view name) const;

    std::uint64_t request_bytes_max_;
    std::map<std::string, Export, std::less<>> exports_;
};

}  // namespace warpraid::nbd
