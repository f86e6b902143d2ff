// The texts of enumerations as the API prints them: kebab-case, never renamed. Those of
// format and geometry have their own to_text().
#pragma once

#include <string_view>

#include "control/service.h"

namespace warpraid::api {

std::string_view name_of(control::DriveUse use);
std::string_view name_of(control::GroupState state);
std::string_view name_of(control::Severity severity);
std::string_view name_of(tasks::Work work);

}  // namespace warpraid::api
