// Text in columns: each as wide as its widest cell, numbers to the right.
#pragma once

#include <string>
#include <vector>

namespace warpraid::cli {

class Table {
  public:
    enum class Align { kLeft, kRight };
    struct Column {
        std::string title;
        Align align = Align::kLeft;
    };

    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
    /// One cell per column; an empty one is shown as "-". Control characters become '?'.
    void add(std::vector<std::string> cells);
    bool empty() const { return rows_.empty(); }
    /// Title line and rows, each starting with `indent` spaces, without spaces at the ends.
    std::string to_text(std::size_t indent = 0) const;

  private:
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace warpraid::cli
