// Small files that survive a crash at any moment: written beside, synced, renamed. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace warpraid::control {

/// What the name of a file that was moved aside has behind its own.
inline constexpr std::string_view kAsideEnding = ".broken";

/// Replaces `path` with `text`; afterwards either the old or the new content is there, whole.
/// kSystem.
Status replace_file(const std::string& path, std::string_view text);
/// The same for several files of one directory. All are written beside before the first is renamed,
/// so that a full disk changes none of them. When it fails later, what was there before is put
/// back, so a refused text is not found after a restart; that needs a file system with hard links.
Status replace_files(std::span<const std::string> paths, std::string_view text);
/// Durable when it returns. Fine when it is not there. kSystem.
Status remove_file(const std::string& path);
/// Whether a crash in replace_file() may have left a file of that name beside its own.
bool is_leftover(std::string_view name);
/// The whole file. kNotFound when there is none; kInvalidArgument when it is no plain file, or
/// larger than `bytes_max`; kIo when it cannot be read; kPermissionDenied and kSystem when it could
/// not even be opened, which says nothing about it and may pass.
Result<std::string> read_file(const std::string& path, std::uint64_t bytes_max);
/// Renames whatever is at `path` to "<path>.broken", or with a number behind when that is taken:
/// nothing is overwritten. The new name.
Result<std::string> move_aside(const std::string& path);
/// Makes the directory `path` and its parents when they are missing (mode 0750); durable when it
/// returns.
Status make_directories(const std::string& path);

}  // namespace warpraid::control
