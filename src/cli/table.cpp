#include "cli/table.h"

#include <algorithm>

#include "base/assert.h"
#include "base/printable.h"

namespace warpraid::cli {

namespace {

/// Characters, not bytes: continuation bytes of UTF-8 take no room.
std::size_t width_of(const std::string& text) {
    return static_cast<std::size_t>(std::ranges::count_if(
        text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
    WARPRAID_ASSERT(cells.size() == columns_.size());
    for (std::string& cell : cells) cell = cell.empty() ? "-" : printable(cell);
    rows_.push_back(std::move(cells));
}

std::string Table::to_text(std::size_t indent) const {
    std::vector<std::size_t> widths;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        widths.push_back(width_of(columns_[i].title));
        for (const auto& row : rows_) widths[i] = std::max(widths[i], width_of(row[i]));
    }
    std::string text;
    const auto add_line = [&](const auto& cell_of) {
        std::string line(indent, ' ');
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            const std::string& cell = cell_of(i);
            const std::string padding(widths[i] - width_of(cell), ' ');
            if (i != 0) line += "  ";
            line += columns_[i].align == Align::kRight ? padding + cell : cell + padding;
        }
        line.resize(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    };
    add_line([&](std::size_t i) -> const std::string& { return columns_[i].title; });
    for (const auto& row : rows_) {
        add_line([&](std::size_t i) -> const std::string& { return row[i]; });
    }
    return text;
}

}  // namespace warpraid::cli
