#include "daemon/signals.h"

#include <initializer_list>

#include "base/assert.h"

namespace warpraid::daemon {

StopSignals::StopSignals() {
    sigemptyset(&set_);
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set_, number);
    WARPRAID_ASSERT(pthread_sigmask(SIG_BLOCK, &set_, nullptr) == 0);
    WARPRAID_ASSERT(std::signal(SIGPIPE, SIG_IGN) != SIG_ERR);
}

int StopSignals::wait() {
    int number = 0;
    while (sigwait(&set_, &number) != 0) {
    }
    return number;
}

}  // namespace warpraid::daemon
