#ifndef KILN_CLIENT_START_DAEMON_H_
#define KILN_CLIENT_START_DAEMON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connect_options.h"

namespace kiln::client {

// The kilnd to start: `options.kilnd`, else the file beside the running
// program, else the first on PATH.
//
// Errors: UNAVAILABLE naming where it was looked for, with a hint.
absl::StatusOr<std::string> FindKilnd(const ConnectOptions& options);

// Starts a daemon in a session of its own, which outlives this process, and
// waits until one accepts connections on options.socket. When several
// processes do so at once, the daemons' lock file lets one live, and every
// caller finds that one.
//
// Errors: UNAVAILABLE: no kilnd; or, with the end of the daemon's log and a
// hint, if none accepts within options.start_timeout or the one started exits;
// PERMISSION_DENIED, with nothing started: the socket's folder is another
// user's.
absl::Status StartDaemon(const ConnectOptions& options);

}  // namespace kiln::client

#endif  // KILN_CLIENT_START_DAEMON_H_
