#ifndef KILN_TESTS_E2E_DAEMON_H_
#define KILN_TESTS_E2E_DAEMON_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/connection.h"
#include "client/kiln.h"
#include "kiln/v1/service.pb.h"
#include "proto/file_descriptor.h"
#include "tests/e2e/process.h"
#include "tests/e2e/small_plan.h"

namespace kiln::e2e {

// A kilnd with socket, cache and log in a folder of its own.
class Daemon {
 public:
  explicit Daemon(std::vector<std::string> arguments = {},
                  int descriptor_limit = 0);
  // Prints the end of the log if the test failed.
  ~Daemon();

  // After the process has ended: another one on the same folder.
  void Start();
  Process& process() { return process_; }
  pid_t pid() const { return process_.pid(); }
  std::filesystem::path folder() const { return folder_.path(); }
  std::string log() const { return ReadWhole(folder_ / "log"); }
  // Without auto_start.
  ConnectOptions connect_options() const;

  // Fail the test, and return nothing useful, when the daemon is gone.
  Client Connect() const;
  std::shared_ptr<client::Connection> OpenConnection() const;
  v1::CacheStatsResponse Stats() const;
  int64_t Compiles() const { return Stats().compiles(); }

  // `kiln` on this daemon's socket.
  CommandResult Kiln(std::vector<std::string> arguments,
                     const std::string& input = "/dev/null") const;

 private:
  const std::vector<std::string> arguments_;
  const int descriptor_limit_;
  TempDir folder_;
  Process process_;
};

// What a daemon that hangs leaves: a socket at `path` that queues connections,
// one more than `backlog`, and says nothing.
FileDescriptor ListenInSilence(const std::string& path, int backlog);

// Whether `condition` came true before `timeout`.
bool Eventually(const std::function<bool()>& condition,
                std::chrono::milliseconds timeout = std::chrono::seconds(20));

}  // namespace kiln::e2e

#endif  // KILN_TESTS_E2E_DAEMON_H_
