#ifndef KILN_CLIENT_CLIENT_H_
#define KILN_CLIENT_CLIENT_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/compiled_plan.h"
#include "client/connect_options.h"
#include "client/session.h"
#include "jit/plan/plan.h"

namespace kiln {

namespace client {
class Connection;
}

struct CompileOptions {
  // "cpu", a known device ("h100-sxm"), "sm_90a/132", or an architecture.
  std::string target = "cpu";
  std::optional<Grade> grade;  // absent: the plan's
  // Answer NOT_FOUND, saying what differs from the nearest entry, instead of
  // compiling.
  bool hit_only = false;
  bool include_artifact = false;  // fetch machine code and launch record
  bool include_source = false;    // fetch the generated CUDA sources with it
  bool prewarm = false;           // the daemon's log says what it compiles for
  // "auto": as the models predict; "conv1", "rows2": other candidates, by rank;
  // "eager": slow but there at once (docs/tuning.md). Empty: the winner of a
  // stored tuning, if there is one.
  std::string variant;
  std::chrono::milliseconds timeout{0};  // 0: ConnectOptions::call_timeout
};

struct DeviceDescriptor {
  std::string device;  // "cpu", "cuda:0"
  std::string name;
  std::string target;  // what to compile for
  std::string state;   // "ready", "idle", "unhealthy: <why>"
  std::string uuid;    // "GPU-..."; empty for cpu
};

struct ServerInfo {
  std::string version;
  int64_t pid = 0;
  std::string cache_dir;
  std::string nvrtc_version;  // empty: none; only hits and cpu are served
  std::vector<DeviceDescriptor> devices;
};

// A connection to a daemon. Cheap to copy; copies share it. Thread-safe. Calls
// have deadlines and return the server's status, with DetailOf(status) saying
// field, value, limit, hint and compile log where they apply.
//
// Errors of every call: UNAVAILABLE: the daemon has gone or drains (connect
// again, then retry); DEADLINE_EXCEEDED; INTERNAL: a bug of Kiln's.
class Client {
 public:
  // Connects to the daemon of this user, and starts one if none answers.
  //
  // Errors: UNAVAILABLE: none answers and none can be started, with the end of
  // its log; PERMISSION_DENIED: another user's socket; FAILED_PRECONDITION: a
  // daemon of another protocol version.
  static absl::StatusOr<Client> Connect(
      ConnectOptions options = DefaultConnectOptions());

  // Errors: INVALID_ARGUMENT or UNIMPLEMENTED: the plan or the target is
  // wrong; NOT_FOUND: hit_only and not cached; INTERNAL: the generated source
  // does not compile; FAILED_PRECONDITION: the daemon has no NVRTC.
  absl::StatusOr<CompiledPlan> Compile(const Plan& plan,
                                       const CompileOptions& options = {});

  // Opens a session for buffers and calls. `on_event` runs on a thread of the
  // session and must not block.
  absl::StatusOr<Session> OpenSession(
      std::function<void(const SessionEvent&)> on_event = {});

  absl::StatusOr<ServerInfo> GetServerInfo();

 private:
  explicit Client(std::shared_ptr<client::Connection> connection);
  std::shared_ptr<client::Connection> connection_;
};

}  // namespace kiln

#endif  // KILN_CLIENT_CLIENT_H_
