// Tells the service manager how far we are: systemd's datagram protocol, without its library.
#pragma once

#include <string>
#include <string_view>

namespace warpraid::daemon {

/// Sends `state` ("READY=1") to `socket`, the value of NOTIFY_SOCKET: a path, or '@' and a name in
/// the abstract namespace. Empty: nobody wants to know. Failures are logged only.
void notify(const std::string& socket, std::string_view state);

}  // namespace warpraid::daemon
