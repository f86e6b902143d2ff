#include "api/names.h"

namespace warpraid::api {

// No default branches: a new enumerator must get its text here, and the compiler says so.

std::string_view name_of(control::DriveUse use) {
    switch (use) {
        case control::DriveUse::kUnconfigured:
            return "unconfigured";
        case control::DriveUse::kMember:
            return "member";
        case control::DriveUse::kSpare:
            return "spare";
        case control::DriveUse::kForeign:
            return "foreign";
        case control::DriveUse::kMissing:
            return "missing";
    }
    return "unknown";
}

std::string_view name_of(control::GroupState state) {
    switch (state) {
        case control::GroupState::kOptimal:
            return "optimal";
        case control::GroupState::kDegraded:
            return "degraded";
        case control::GroupState::kRebuilding:
            return "rebuilding";
        case control::GroupState::kResyncing:
            return "resyncing";
        case control::GroupState::kHeld:
            return "held";
        case control::GroupState::kFailed:
            return "failed";
        case control::GroupState::kOffline:
            return "offline";
    }
    return "unknown";
}

std::string_view name_of(control::Severity severity) {
    switch (severity) {
        case control::Severity::kInfo:
            return "info";
        case control::Severity::kWarning:
            return "warning";
        case control::Severity::kError:
            return "error";
    }
    return "unknown";
}

std::string_view name_of(tasks::Work work) {
    switch (work) {
        case tasks::Work::kNone:
            return "none";
        case tasks::Work::kResync:
            return "resync";
        case tasks::Work::kRebuild:
            return "rebuild";
        case tasks::Work::kVerify:
            return "verify";
    }
    return "unknown";
}

}  // namespace warpraid::api
