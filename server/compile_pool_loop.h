#ifndef KILN_SERVER_COMPILE_POOL_LOOP_H_
#define KILN_SERVER_COMPILE_POOL_LOOP_H_

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/mutex.h"
#include "server/child_channel.h"
#include "server/compile_pool.h"
#include "server/event_loop.h"

namespace kiln {

// The state of a CompilePool. Public functions are thread-safe and hand over
// to the loop's thread, where everything else lives.
class CompilePool::Loop {
 public:
  explicit Loop(Options options);
  ~Loop();

  uint64_t Submit(CompileRequest request, const std::string& request_id,
                  Done done);
  void Cancel(uint64_t job);
  void WhenArchitecturesKnown(
      std::function<void(const std::vector<int>&)> known);
  Counters counters() const;

 private:
  using Clock = EventLoop::Clock;

  struct Job {
    uint64_t id = 0;
    CompileRequest request;
    std::string request_id;
    Done done;
    Clock::time_point submitted;
    int64_t queue_us = 0;
    int deaths = 0;  // of workers that had it
  };

  // Starting (not ready), idle (ready, no job) or busy.
  struct Worker {
    std::unique_ptr<ChildChannel> channel;
    bool ready = false;
    std::optional<Job> job;
    int jobs_taken = 0;
    EventLoop::Id timer = 0;  // start, hard deadline or quiet, by state
  };
  using Workers = std::map<uint64_t, Worker>;

  void Enqueue(Job job);
  void CancelJob(uint64_t id);
  void Shutdown();

  // Hands queued jobs to idle workers, then starts workers as needed.
  void Dispatch();
  void Assign(uint64_t worker_id);
  void Scale();
  bool StartWorker();
  void NoWorkerStarts(const std::string& cause);

  void OnReply(uint64_t worker_id, ipc::Reply reply);
  void OnReady(uint64_t worker_id, const ipc::Ready& ready);
  void KnowArchitectures(std::vector<int> architectures);
  void OnAnswer(uint64_t worker_id, ipc::Reply reply);
  void OnEnd(uint64_t worker_id, const std::string& cause);
  void OnStartDeadline(uint64_t worker_id);
  void OnHardDeadline(uint64_t worker_id);
  void OnQuiet(uint64_t worker_id);

  void BecomeIdle(uint64_t worker_id);
  // Ends the worker and returns its job, if any.
  std::optional<Job> Remove(uint64_t worker_id);
  void RetryOrFail(Job job, const std::string& cause);
  void SetTimer(uint64_t worker_id, std::chrono::milliseconds delay,
                void (Loop::*expired)(uint64_t));
  void Count(int64_t Counters::*counter);
  void UpdateGauges();

  const Options options_;
  std::atomic<uint64_t> next_job_{1};
  uint64_t next_worker_ = 1;
  std::deque<Job> queue_;
  Workers workers_;
  int failed_starts_ = 0;  // since a worker last answered
  bool backing_off_ = false;
  bool shutting_down_ = false;

  mutable Mutex mutex_;
  Counters counters_ KILN_GUARDED_BY(mutex_);
  // Empty until a worker has come up, or did not.
  std::optional<std::vector<int>> architectures_ KILN_GUARDED_BY(mutex_);
  std::vector<std::function<void(const std::vector<int>&)>> waiting_
      KILN_GUARDED_BY(mutex_);

  EventLoop loop_{"kiln-compile"};
};

}  // namespace kiln

#endif  // KILN_SERVER_COMPILE_POOL_LOOP_H_
