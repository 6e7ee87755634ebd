#ifndef KILN_SERVER_EXECUTOR_PROCESS_LOOP_H_
#define KILN_SERVER_EXECUTOR_PROCESS_LOOP_H_

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "cache/mutex.h"
#include "server/child_channel.h"
#include "server/event_loop.h"
#include "server/executor_process.h"

namespace kiln {

// The state of an ExecutorProcess. Public functions are thread-safe and hand
// over to the loop's thread, where everything else lives.
class ExecutorProcess::Loop {
 public:
  explicit Loop(Options options);
  ~Loop();

  // A request and what becomes of it.
  struct Call {
    ipc::Request request;
    FileDescriptor descriptor;                    // of Open
    std::shared_ptr<const std::string> artifact;  // of Execute
    bool starts_process = true;
    bool sent_artifact = false;
    std::function<void(absl::StatusOr<ipc::Reply>)> done;
  };
  void Submit(Call call);

  std::string state() const;
  int pid() const;

 private:
  using Clock = EventLoop::Clock;

  void Begin(Call call);
  absl::Status Admit(const Call& call);
  absl::Status CheckHealth(const Call& call) const;
  absl::Status EnsureRunning();
  absl::Status StartProcess();
  // Sends the call and keeps it until its reply.
  void Dispatch(Call call);
  // From ids of the front to ids of the process, which starts anew at 1.
  absl::Status ToProcessIds(ipc::Request* request) const;
  void ArmDeadline();

  void OnReply(ipc::Reply reply);
  void OnFirstReply(const ipc::Reply& reply);
  // Whether the process that says this can be used. Later processes must name
  // the same device as the first: an ordinal may come to mean another GPU.
  absl::Status CheckFirst(const ipc::Reply& reply);
  void OnDeadline();
  // The process is gone or ends here: tells the owner, then fails the calls;
  // the oldest with `oldest`.
  void Die(const std::string& reason, const absl::Status& oldest);
  void FailCalls(const absl::Status& oldest, const absl::Status& others);
  void RecordDeath(const std::string& reason);
  void DropProcess();
  // Watches over the end of the process that is about to be killed.
  void AwaitEnd();
  void SetStuck(int pid, bool stuck);
  void SetMissing(const std::string& reason);
  // Tells the owner if the device has become usable or unusable.
  void PublishHealth();
  // Why the device cannot be used; empty: it can.
  std::string Problem() const KILN_REQUIRES(mutex_);
  void Shutdown();
  void SetState(const std::string& state);

  const Options options_;
  std::unique_ptr<ChildChannel> channel_;  // null: not running
  bool ready_ = false;                     // the process said so
  uint64_t generation_ = 0;                // counts processes
  uint64_t next_call_ = 1;
  std::deque<Call> calls_;           // sent, in order; not yet answered
  std::set<std::string> sent_keys_;  // artifacts that the process was given
  std::deque<Clock::time_point> deaths_;  // within the window
  Clock::time_point refused_until_;       // a start failed with refusal_
  absl::Status refusal_;
  std::optional<std::string> uuid_;  // as the first process said
  std::string published_problem_;
  EventLoop::Id deadline_ = 0;
  bool shutting_down_ = false;

  mutable Mutex mutex_;
  std::string state_ KILN_GUARDED_BY(mutex_) = "idle";
  int pid_ KILN_GUARDED_BY(mutex_) = 0;
  std::string unhealthy_reason_ KILN_GUARDED_BY(mutex_);
  Clock::time_point unhealthy_until_ KILN_GUARDED_BY(mutex_);
  std::string missing_reason_ KILN_GUARDED_BY(mutex_);  // of refusal_
  std::set<int> stuck_pids_ KILN_GUARDED_BY(mutex_);

  EventLoop loop_{"kiln-executor"};
};

}  // namespace kiln

#endif  // KILN_SERVER_EXECUTOR_PROCESS_LOOP_H_
