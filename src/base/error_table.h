// Every failure an operator can meet: one row each. Columns: enumerator, stable code (printed in
// JSON, never renamed), errno for block and socket callers, HTTP status for the API.
#pragma once

#include <cerrno>

// clang-format off
#define WARPRAID_ERROR_TABLE(X)                                                   \
    /* requests that make no sense */                                             \
    X(kInvalidArgument,     "invalid-argument",      EINVAL,       400)           \
    X(kBadJson,             "bad-json",              EINVAL,       400)           \
    X(kBadConfig,           "bad-config",            EINVAL,       400)           \
    X(kBadName,             "bad-name",              EINVAL,       400)           \
    X(kBadSize,             "bad-size",              EINVAL,       400)           \
    X(kBadChunk,            "bad-chunk",             EINVAL,       400)           \
    X(kBadLevel,            "bad-level",             EINVAL,       400)           \
    X(kMemberCount,         "member-count",          EINVAL,       400)           \
    X(kNotConfirmed,        "not-confirmed",         EPERM,        400)           \
    X(kPermissionDenied,    "permission-denied",     EACCES,       403)           \
    X(kNotFound,            "not-found",             ENOENT,       404)           \
    X(kAlreadyExists,       "already-exists",        EEXIST,       409)           \
    X(kNoSpace,             "no-space",              ENOSPC,       409)           \
    X(kWrongState,          "wrong-state",           EBUSY,        409)           \
    X(kInUse,               "in-use",                EBUSY,        409)           \
    X(kStaleToken,          "stale-token",           ESTALE,       409)           \
    X(kLimitReached,        "limit-reached",         ENOSPC,       409)           \
    X(kNotSupported,        "not-supported",         EOPNOTSUPP,   501)           \
    /* drives that cannot be used */                                              \
    X(kMemberTooSmall,      "member-too-small",      ENOSPC,       409)           \
    X(kBlockSizeMismatch,   "block-size-mismatch",   EINVAL,       409)           \
    X(kHasSignature,        "has-signature",         EEXIST,       409)           \
    X(kHasSuperblock,       "has-superblock",        EEXIST,       409)           \
    X(kDriveReadOnly,       "drive-read-only",       EROFS,        409)           \
    X(kDriveBusy,           "drive-busy",            EBUSY,        409)           \
    X(kDriveOpen,           "drive-open-failed",     EIO,          409)           \
    X(kDriveMissing,        "drive-missing",         ENODEV,       409)           \
    /* superblocks and assembly */                                                \
    X(kNoSuperblock,        "no-superblock",         ENOENT,       404)           \
    X(kBadSuperblock,       "bad-superblock",        EBADMSG,      409)           \
    X(kUnsupportedVersion,  "unsupported-version",   EPROTONOSUPPORT, 409)        \
    X(kUnsupportedLayout,   "unsupported-layout",    EPROTONOSUPPORT, 409)        \
    X(kDuplicateMember,     "duplicate-member",      ENOTUNIQ,     409)           \
    X(kSplitBrain,          "split-brain",           EBADE,        409)           \
    X(kIncomplete,          "incomplete",            ENODEV,       409)           \
    X(kQuorumLost,          "quorum-lost",           ENODEV,       409)           \
    X(kDirtyDegraded,       "dirty-degraded",        EUCLEAN,      409)           \
    X(kDestroyed,           "destroyed",             ENOENT,       409)           \
    X(kGroupFailed,         "group-failed",          EIO,          409)           \
    X(kMetadataWrite,       "metadata-write-failed", EIO,          500)           \
    X(kStateNotSaved,       "state-not-saved",       EIO,          500)           \
    X(kBadPartitionTable,   "bad-partition-table",   EBADMSG,      409)           \
    /* data path */                                                               \
    X(kIo,                  "io-error",              EIO,          500)           \
    X(kTimeout,             "timeout",               ETIMEDOUT,    500)           \
    X(kOutOfMemory,         "out-of-memory",         ENOMEM,       500)           \
    /* daemon and sockets */                                                      \
    X(kDaemonRunning,       "daemon-running",        EADDRINUSE,   409)           \
    X(kDaemonUnreachable,   "daemon-unreachable",    ECONNREFUSED, 503)           \
    X(kProtocol,            "protocol-error",        EPROTO,       400)           \
    X(kSystem,              "system-error",          EIO,          500)           \
    X(kInternal,            "internal-error",        EIO,          500)
// clang-format on
