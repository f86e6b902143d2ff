// The daemon's answers as text for people. Pure: JSON in, text out.
#pragma once

#include <string>

#include "cli/fields.h"
#include "cli/options.h"

namespace warpraid::cli {

/// What a command prints when it has succeeded; ends with a line end, or is empty.
std::string view(const Options& options, const Json& answer);

// ---- the parts of it ----------------------------------------------------------------------------

std::string view_drives(const Json& drives);
std::string view_groups(const Json& groups);
std::string view_volumes(const Json& volumes);
std::string view_spares(const Json& spares);
std::string view_exports(const Json& exports);
std::string view_events(const Json& events);
std::string view_health(const Json& health);
std::string view_outcomes(const Json& outcomes);
std::string view_drive(const Json& drive);
std::string view_group(const Json& group);
std::string view_volume(const Json& volume);
std::string view_spare(const Json& spare);
std::string view_export(const Json& record);
std::string view_event(const Json& event);
std::string view_status(const Json& status);

/// "rebuild 25 %, 95.4 MiB/s, 8s left"; empty when nothing runs.
std::string task_text(const Json& task);

}  // namespace warpraid::cli
