#ifndef KILN_CLIENT_CONNECT_OPTIONS_H_
#define KILN_CLIENT_CONNECT_OPTIONS_H_

#include <chrono>
#include <string>
#include <vector>

namespace kiln {

// How to reach the daemon. A value.
struct ConnectOptions {
  std::string socket;  // Unix socket that kilnd serves on

  // Start a private daemon on `socket` if none answers.
  bool auto_start = true;
  // Its program; empty: beside the running program, then on PATH.
  std::string kilnd;
  std::string idle_exit = "10m";        // when nobody has used it for so long
  std::vector<std::string> kilnd_args;  // further options, passed on
  std::string log_file;                 // its log, appended to
  std::chrono::milliseconds start_timeout{10'000};

  // The CUDA driver of this process, a file or a soname; opened when a session
  // first shares memory of a GPU.
  std::string cuda_driver = "libcuda.so.1";

  // Deadline of every call that does not take one of its own. Compiling ends
  // within 60 s on the server, beside time spent in its queue.
  std::chrono::milliseconds call_timeout{120'000};
};

// The defaults of this user: socket $KILN_SOCKET, else
// $XDG_RUNTIME_DIR/kiln/kilnd.sock, else /tmp/kiln-<uid>/kilnd.sock; log
// $XDG_STATE_HOME/kiln/kilnd.log, else ~/.local/state/kiln/kilnd.log. The only
// place of the library that reads the environment, PATH apart.
ConnectOptions DefaultConnectOptions();

}  // namespace kiln

#endif  // KILN_CLIENT_CONNECT_OPTIONS_H_
