// docs/operating.md against the table of errors.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/error_table.h"

namespace warpraid::api {

namespace {

TEST(Documents, every_error_code_is_explained_with_its_status) {
    std::map<std::string, std::string> expected;
#define WARPRAID_ERROR_ROW(name, text, posix, http) expected[text] = #http;
    WARPRAID_ERROR_TABLE(WARPRAID_ERROR_ROW)
#undef WARPRAID_ERROR_ROW
    std::ifstream file(std::string(WARPRAID_SOURCE_DIRECTORY) + "/docs/operating.md");
    ASSERT_TRUE(file.is_open());
    std::map<std::string, std::string> documented;
    bool is_in_table = false;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("## ")) is_in_table = line == "## Error codes";
        if (!is_in_table || !line.starts_with("| `")) continue;
        std::vector<std::string> cells;
        std::istringstream stream(line);
        for (std::string cell; std::getline(stream, cell, '|');) cells.push_back(cell);
        ASSERT_GE(cells.size(), 5u) << line;
        const std::string code = cells[1].substr(2, cells[1].size() - 4);
        EXPECT_TRUE(documented.emplace(code, cells[2].substr(1, 3)).second) << code;
        EXPECT_GT(cells[3].size() + cells[4].size(), 6u) << code << " is not explained";
    }
    EXPECT_EQ(documented, expected);
}

}  // namespace

}  // namespace warpraid::api
