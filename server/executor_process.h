#ifndef KILN_SERVER_EXECUTOR_PROCESS_H_
#define KILN_SERVER_EXECUTOR_PROCESS_H_

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/execution_backend.h"

namespace kiln {

// The front's side of one device's executor process. Started on first use,
// and again on the next use after it died; with its death every memory id
// becomes invalid for good and calls under way are answered ABORTED. A process
// that finds another device under the name (its UUID differs from that of the
// first) is ended, and the device out of use until the first is back. The
// process serves one call after the other. Thread-safe; no call blocks; each
// callback is called exactly once, on the executor's thread, and must not
// block.
class ExecutorProcess {
 public:
  struct Options {
    std::string executable;  // kilnd itself, exec'ed as `--role executor`
    std::string device;      // "cpu", "cuda:0"
    // Of one Execute on the device, waiting not counted; then SIGKILL and
    // DEADLINE_EXCEEDED. Longer for cpu, which evaluates in double.
    std::chrono::milliseconds execute_deadline{10'000};
    // After `max_deaths` within `death_window` Execute is refused with
    // FAILED_PRECONDITION for `unhealthy_period`: something kills the process
    // again and again, and takes everybody's buffers with it.
    int max_deaths = 3;
    std::chrono::milliseconds death_window{60'000};
    std::chrono::milliseconds unhealthy_period{300'000};
    // A process that is not gone this long after SIGKILL is stuck in the
    // device's driver. Until it is gone, calls are refused with UNAVAILABLE.
    std::chrono::milliseconds kill_limit{5'000};
    int kill_signal = SIGKILL;  // for tests, see ChildProcess::Options
    // Called when the device becomes unusable, with the reason, and when it is
    // usable again, with an empty one. On the executor's thread.
    std::function<void(std::string problem)> on_health;
    // Called after each death with its cause, before calls fail.
    std::function<void(std::string reason)> on_death;
  };

  static std::unique_ptr<ExecutorProcess> Create(Options options);
  // Kills the process; calls under way are answered UNAVAILABLE.
  ~ExecutorProcess();

  using Described = std::function<void(absl::StatusOr<DeviceDescription>)>;
  using Opened = std::function<void(absl::StatusOr<OpenedMemory>)>;
  using Executed = std::function<void(absl::StatusOr<int64_t>)>;

  // Every call answers the backend's status, ABORTED when the process died,
  // UNAVAILABLE while a killed one is stuck, RESOURCE_EXHAUSTED over 4096 calls
  // under way, and what kept the process from starting (FAILED_PRECONDITION: no
  // such device, or another one than before).
  void Describe(Described done);
  // Takes ownership of a descriptor in `source`.
  void Open(MemorySource source, Opened done);
  void Close(uint64_t memory, std::function<void()> done);
  // `artifact` is the serialised kiln.v1.Artifact of `key`; it is sent only
  // when the process does not hold that key yet. Answers the microseconds that
  // the device took. A memory id of a process that died is ABORTED.
  void Execute(const std::string& key,
               std::shared_ptr<const std::string> artifact, ExecuteJob job,
               Executed done);
  void EndSession(const std::string& session);

  // "idle" (not running, starts when used), "starting", "restarting", "ready",
  // "unhealthy: <why>".
  std::string state() const;
  int pid() const;  // 0 when not running

 private:
  class Loop;
  explicit ExecutorProcess(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace kiln

#endif  // KILN_SERVER_EXECUTOR_PROCESS_H_
