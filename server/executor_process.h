#ifndef KILN_SERVER_EXECUTOR_PROCESS_H_
#define KILN_SERVER_EXECUTOR_PROCESS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/execution_backend.h"

namespace kiln {

// The front's side of one device's executor process. Started on first use,
// restarted when it dies; every memory id then becomes invalid and calls under
// way are answered ABORTED. Thread-safe; no call blocks; each callback is
// called exactly once, on the executor's thread, and must not block.
class ExecutorProcess {
 public:
  struct Options {
    std::string executable;  // kilnd itself, exec'ed as `--role executor`
    std::string device;      // "cpu", "cuda:0"
    std::chrono::milliseconds execute_deadline{10'000};  // then SIGKILL
    // Called after each death with its cause, before calls fail.
    std::function<void(std::string reason)> on_death;
  };

  static std::unique_ptr<ExecutorProcess> Create(Options options);
  ~ExecutorProcess();

  using Described = std::function<void(absl::StatusOr<DeviceDescription>)>;
  using Opened = std::function<void(absl::StatusOr<OpenedMemory>)>;
  using Executed = std::function<void(absl::StatusOr<int64_t>)>;

  void Describe(Described done);
  // Takes ownership of a descriptor in `source`.
  void Open(MemorySource source, Opened done);
  void Close(uint64_t memory, std::function<void()> done);
  // `artifact` is the serialised kiln.v1.Artifact of `key`; it is sent only
  // when the process does not hold that key yet. Answers the microseconds that
  // the device took.
  void Execute(const std::string& key,
               std::shared_ptr<const std::string> artifact, ExecuteJob job,
               Executed done);
  void EndSession(const std::string& session);

  // "idle" (not started), "ready", "restarting", "unhealthy: <why>".
  std::string state() const;
  int pid() const;  // 0 when not running; for tests

 private:
  class Loop;
  explicit ExecutorProcess(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace kiln

#endif  // KILN_SERVER_EXECUTOR_PROCESS_H_
