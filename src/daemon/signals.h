// Signals that ask the daemon to stop, as a call that waits for one.
#pragma once

#include <csignal>

namespace warpraid::daemon {

/// Make it before any thread, so that all of them inherit the mask. SIGTERM, SIGINT and SIGHUP are
/// held back until wait(); SIGPIPE is ignored.
class StopSignals {
  public:
    StopSignals();
    /// Returns the signal that came, also one that came before the call.
    int wait();

  private:
    sigset_t set_;
};

}  // namespace warpraid::daemon
