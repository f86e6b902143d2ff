#include "daemon/toml_reader.h"

#include <algorithm>
#include <cstdint>

namespace warpraid::daemon {

namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_key_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '-';
}

bool is_control(char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
}

int hex_digit(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

std::string utf8_of(std::uint32_t c) {
    const auto tail = [c](unsigned shift) {
        return static_cast<char>(0x80 | ((c >> shift) & 0x3f));
    };
    if (c < 0x80) return {static_cast<char>(c)};
    if (c < 0x800) return {static_cast<char>(0xc0 | c >> 6), tail(0)};
    if (c < 0x10000) return {static_cast<char>(0xe0 | c >> 12), tail(6), tail(0)};
    return {static_cast<char>(0xf0 | c >> 18), tail(12), tail(6), tail(0)};
}

class Reader {
  public:
    explicit Reader(std::string_view text) : rest_(text) {}
    Result<std::vector<TomlEntry>> read();

  private:
    Error bad(const std::string& message) const {
        return Error{ErrorCode::kBadConfig, "line " + std::to_string(line_) + ": " +
                                                (key_.empty() ? "" : key_ + ": ") + message};
    }
    /// The next character, or 0 at the end; a zero byte in the text is refused at the start.
    char next() const { return rest_.empty() ? '\0' : rest_.front(); }
    void advance(std::size_t count) { rest_.remove_prefix(count); }
    bool take(char c) {
        if (next() != c) return false;
        advance(1);
        return true;
    }
    void skip_blanks() { advance(std::min(rest_.find_first_not_of(" \t"), rest_.size())); }
    bool take_line_end();
    Status skip_comment();
    Status skip_blank_lines();
    Status read_entry(TomlEntry& entry);
    Status read_list(std::vector<std::string>& values);
    Result<std::string> read_value();
    Result<std::string> read_basic_string();
    Result<std::string> read_escape();
    Result<std::string> read_literal_string();
    Result<std::string> read_word();

    std::string_view rest_;
    std::size_t line_ = 1;
    std::string key_;  // being read, for messages
};

bool Reader::take_line_end() {
    if (rest_.starts_with("\r\n")) {
        advance(2);
    } else if (!take('\n')) {
        return false;
    }
    ++line_;
    return true;
}

Status Reader::skip_comment() {
    if (next() != '#') return success();
    while (!rest_.empty() && next() != '\n' && !rest_.starts_with("\r\n")) {
        if (is_control(next())) return bad("a control character in a comment");
        advance(1);
    }
    return success();
}

Status Reader::skip_blank_lines() {
    do {
        skip_blanks();
        WARPRAID_TRY(skip_comment());
    } while (take_line_end());
    return success();
}

Result<std::string> Reader::read_escape() {
    static constexpr std::string_view kNames = "btnfr\"\\";
    static constexpr std::string_view kMeanings = "\b\t\n\f\r\"\\";
    const char name = next();
    if (!rest_.empty()) advance(1);
    const std::size_t known = kNames.find(name);
    if (known != std::string_view::npos) return std::string(1, kMeanings[known]);
    if (name != 'u' && name != 'U') return bad("an escape that means nothing");
    std::uint32_t code = 0;
    for (int digits = name == 'u' ? 4 : 8; digits > 0; --digits) {
        const int digit = hex_digit(next());
        if (digit < 0) return bad("an escape with too few digits");
        code = code << 4 | static_cast<std::uint32_t>(digit);
        advance(1);
    }
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
        return bad("an escape that is no character");
    }
    return utf8_of(code);
}

Result<std::string> Reader::read_basic_string() {
    std::string value;
    advance(1);
    while (!take('"')) {
        if (rest_.empty() || is_control(next())) return bad("a string does not end on its line");
        if (take('\\')) {
            WARPRAID_TRY_ASSIGN(const std::string escaped, read_escape());
            value += escaped;
        } else {
            value += next();
            advance(1);
        }
    }
    return value;
}

Result<std::string> Reader::read_literal_string() {
    std::string value;
    advance(1);
    while (!take('\'')) {
        if (rest_.empty() || is_control(next())) return bad("a string does not end on its line");
        value += next();
        advance(1);
    }
    return value;
}

/// true, false, or a decimal number.
Result<std::string> Reader::read_word() {
    const std::string word(rest_.substr(0, rest_.find_first_of(" \t\r\n#,]")));
    const Error refusal = bad("must be a string, a whole number, true or false");
    if (word == "true" || word == "false") {
        advance(word.size());
        return word;
    }
    const std::size_t sign = word.starts_with('-') || word.starts_with('+') ? 1 : 0;
    std::string digits = word.substr(sign);
    const bool is_number = !digits.empty() && std::ranges::all_of(digits, is_digit);
    if (!is_number || (digits.size() > 1 && digits[0] == '0')) return refusal;
    advance(word.size());
    return word.starts_with('-') ? "-" + digits : digits;
}

Result<std::string> Reader::read_value() {
    if (rest_.starts_with("\"\"\"") || rest_.starts_with("'''")) {
        return bad("strings of several lines are not used here");
    }
    if (next() == '"') return read_basic_string();
    if (next() == '\'') return read_literal_string();
    return read_word();
}

Status Reader::read_list(std::vector<std::string>& values) {
    advance(1);
    while (true) {
        WARPRAID_TRY(skip_blank_lines());
        if (take(']')) return success();
        WARPRAID_TRY_ASSIGN(std::string value, read_value());
        values.push_back(std::move(value));
        WARPRAID_TRY(skip_blank_lines());
        if (take(',')) continue;
        if (!take(']')) return bad("a list needs ',' or ']' after a value");
        return success();
    }
}

Status Reader::read_entry(TomlEntry& entry) {
    entry.line = line_;
    while (is_key_character(next())) {
        entry.key += next();
        advance(1);
    }
    if (entry.key.empty()) return bad("needs `key = value`; there are no tables here");
    key_ = entry.key;
    skip_blanks();
    if (!take('=')) return bad("needs '=' after the key");
    skip_blanks();
    if (next() == '[') {
        WARPRAID_TRY(read_list(entry.values));
    } else {
        WARPRAID_TRY_ASSIGN(std::string value, read_value());
        entry.values.push_back(std::move(value));
    }
    skip_blanks();
    WARPRAID_TRY(skip_comment());
    if (!rest_.empty() && !take_line_end()) return bad("nothing may follow a value on its line");
    key_.clear();
    return success();
}

Result<std::vector<TomlEntry>> Reader::read() {
    if (rest_.find('\0') != std::string_view::npos) return bad("a zero byte: this is no text");
    if (rest_.starts_with("\xef\xbb\xbf")) advance(3);  // a byte order mark
    std::vector<TomlEntry> entries;
    while (true) {
        WARPRAID_TRY(skip_blank_lines());
        if (rest_.empty()) return entries;
        TomlEntry entry;
        WARPRAID_TRY(read_entry(entry));
        if (std::ranges::find(entries, entry.key, &TomlEntry::key) != entries.end()) {
            return Error{ErrorCode::kBadConfig, "line " + std::to_string(entry.line) + ": " +
                                                    entry.key + ": is given twice"};
        }
        entries.push_back(std::move(entry));
    }
}

}  // namespace

Result<std::vector<TomlEntry>> read_toml(std::string_view text) {
    return Reader(text).read();
}

}  // namespace warpraid::daemon
