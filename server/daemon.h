#ifndef KILN_SERVER_DAEMON_H_
#define KILN_SERVER_DAEMON_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/accept_loop.h"
#include "server/front.h"
#include "server/options.h"

namespace kiln {

// The front: everything that kilnd does apart from its child processes.
class Daemon {
 public:
  // Takes the socket's lock, opens the cache, finds NVRTC, starts the compile
  // workers and serves.
  //
  // Errors: ALREADY_EXISTS: another daemon serves the socket;
  // FAILED_PRECONDITION: socket folder, cache, log or manifest cannot be used;
  // INVALID_ARGUMENT: --nvrtc names no NVRTC.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const Options& options);
  // Cancels what is under way.
  ~Daemon();

  // Returns when a signal (SIGTERM, SIGINT) arrives at `signal_fd`, a
  // signalfd, or when nobody needed the daemon for the idle time.
  void WaitForEnd(int signal_fd);

  // Stops accepting, tells clients, waits for calls under way, at most the
  // drain time or until another signal, and answers the rest UNAVAILABLE.
  void Drain(int signal_fd);

 private:
  Daemon() = default;
  absl::Status StartFront(const Options& options);
  absl::Status Listen();
  void LogStart() const;
  bool idle() const;

  FileDescriptor lock_;
  Front front_;
  std::unique_ptr<AcceptLoop> side_loop_;
  std::unique_ptr<AcceptLoop> accept_loop_;
};

}  // namespace kiln

#endif  // KILN_SERVER_DAEMON_H_
