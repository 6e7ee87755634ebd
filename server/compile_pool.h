#ifndef KILN_SERVER_COMPILE_POOL_H_
#define KILN_SERVER_COMPILE_POOL_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/compile/compile_request.h"
#include "jit/compile/toolchain.h"

namespace kiln {

// The front's side of the compile workers: a queue and a pool of processes,
// each with NVRTC loaded and warm. One worker at start, more with queue depth
// up to `max_workers`, fewer after a minute of quiet. A worker that dies or
// overstays is replaced, and its job answered; a hostile or unlucky plan can
// cost its own request only. Thread-safe.
class CompilePool {
 public:
  struct Options {
    std::string executable;  // kilnd itself, exec'ed as `--role worker`
    Toolchain toolchain;     // of no library: only the cpu target compiles
    int max_workers = 1;
    int max_queued = 2048;
    std::chrono::milliseconds soft_deadline{30'000};   // NVRTC is asked to stop
    std::chrono::milliseconds hard_deadline{60'000};   // SIGKILL
    std::chrono::milliseconds start_deadline{30'000};  // load and warm up
    std::chrono::milliseconds idle_quiet{60'000};
  };

  struct Outcome {
    std::string artifact;  // serialised kiln.v1.Artifact
    int64_t queue_us = 0;
    int64_t generate_us = 0;
    int64_t nvrtc_us = 0;
  };
  // Called exactly once per job, on the pool's thread; must not block.
  using Done = std::function<void(absl::StatusOr<Outcome>)>;

  // Starts the first worker and returns without waiting for it.
  //
  // Errors: INVALID_ARGUMENT: `executable` is no program.
  static absl::StatusOr<std::unique_ptr<CompilePool>> Start(Options options);
  // Kills the workers; jobs that are not done are answered UNAVAILABLE.
  ~CompilePool();

  // Queues a job. Answers DEADLINE_EXCEEDED past a deadline, UNAVAILABLE when
  // the worker died twice on it or no worker comes up, RESOURCE_EXHAUSTED when
  // the queue is full, otherwise as CompilePlan does. Deadlines count from the
  // moment that a worker has the job. What is logged of the job carries
  // `request_id`. Returns an id for Cancel.
  uint64_t Submit(CompileRequest request, const std::string& request_id,
                  Done done);

  // Calls `known` with the architectures that the workers' NVRTC knows (75 for
  // sm_75): at once, or when the first worker has come up. None if it has not,
  // or has no NVRTC. Jobs wait for `known` then.
  void WhenArchitecturesKnown(
      std::function<void(const std::vector<int>&)> known);

  // Drops the job if queued, kills its worker if running; `done` is answered
  // CANCELLED. Unknown ids are ignored.
  void Cancel(uint64_t job);

  struct Counters {
    int workers = 0;       // alive
    int64_t started = 0;   // workers ever started
    int64_t crashed = 0;   // ended by themselves or broke the protocol
    int64_t killed = 0;    // for a deadline or a cancelled job
    int64_t recycled = 0;  // for their age, size or an idle pool
    int64_t compiles = 0;  // times that a job was handed to a worker
    int64_t queued = 0;    // waiting now
  };
  Counters counters() const;

 private:
  class Loop;
  explicit CompilePool(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace kiln

#endif  // KILN_SERVER_COMPILE_POOL_H_
