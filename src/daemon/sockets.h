// The daemon's listening Unix sockets: made before anything else, so that a second daemon fails
// early, and taken away at an orderly end.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace warpraid::daemon {

/// A listening socket and its file. The file goes when this is destroyed.
class ListeningSocket {
  public:
    /// Mode 0660 and `group_id` (negative: the daemon's own); directories on the way are made.
    static Result<ListeningSocket> make(const std::string& path, int group_id);
    ListeningSocket(ListeningSocket&& other) noexcept;
    ListeningSocket& operator=(ListeningSocket&&) = delete;
    ~ListeningSocket();

    /// Hands the descriptor to who serves it; the file stays ours.
    UniqueFd take() { return std::move(fd_); }

  private:
    ListeningSocket(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
    std::string path_;
    UniqueFd fd_;
};

/// Listens, and while the address is taken (kDaemonRunning) tries again for up to 3 s: the sockets
/// of a server that was killed outlive it while the kernel winds up its ring.
Result<UniqueFd> listen_patiently(const std::function<Result<UniqueFd>()>& listen);

/// The id of a group by name, -1 for an empty name. kBadConfig when there is none.
Result<int> find_group_id(const std::string& name);

}  // namespace warpraid::daemon
