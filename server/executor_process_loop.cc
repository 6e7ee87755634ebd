#include "server/executor_process_loop.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "server/process_converter.h"

namespace kiln {
namespace {

constexpr size_t kMaxCalls = 4096;
// Creating a CUDA context takes up to some seconds on a busy host.
constexpr std::chrono::milliseconds kControlDeadline{60'000};
// How long the answer of a process that refused to start is believed.
constexpr std::chrono::milliseconds kRefusalPeriod{2'000};
// The front's memory ids carry the process's generation above this bit, so
// that an id never names memory of another process.
constexpr int kGenerationShift = 40;
constexpr uint64_t kProcessIdMask = (uint64_t{1} << kGenerationShift) - 1;

// A device driver takes much of its configuration from the environment.
std::vector<std::string> WholeEnvironment() {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    environment.emplace_back(*entry);
  }
  return environment;
}

absl::Status Died(const std::string& device, const std::string& reason) {
  return absl::AbortedError(fmt::format(
      "The executor of {} ended ({}). Register buffers again, then retry.",
      device, reason));
}

absl::Status Unhealthy(const std::string& device, const std::string& reason) {
  return absl::FailedPreconditionError(fmt::format(
      "The executor of {} ends again and again and is paused for some minutes "
      "(last: {}).",
      device, reason));
}

absl::Status OtherDevice(const std::string& device, const std::string& now,
                         const std::string& before) {
  return absl::FailedPreconditionError(fmt::format(
      "The name {} has come to mean another GPU (now {}, before {}). Restart "
      "kilnd to use it.",
      device, now, before));
}

absl::Status Stuck(const std::string& device, const std::string& problem) {
  return absl::UnavailableError(
      fmt::format("The device {} is out of use: {}. Retry later, or look at "
                  "the kernel's log (dmesg).",
                  device, problem));
}

}  // namespace

ExecutorProcess::Loop::Loop(Options options) : options_(std::move(options)) {}

ExecutorProcess::Loop::~Loop() {
  loop_.Post([this] { Shutdown(); });
  loop_.Stop();
}

void ExecutorProcess::Loop::Submit(Call call) {
  auto shared = std::make_shared<Call>(std::move(call));
  loop_.Post([this, shared] { Begin(std::move(*shared)); });
}

std::string ExecutorProcess::Loop::state() const {
  MutexLock lock(mutex_);
  const std::string problem = Problem();
  return problem.empty() ? state_ : fmt::format("unhealthy: {}", problem);
}

int ExecutorProcess::Loop::pid() const {
  MutexLock lock(mutex_);
  return pid_;
}

void ExecutorProcess::Loop::Begin(Call call) {
  absl::Status admitted = Admit(call);
  if (admitted.ok() && (call.starts_process || channel_ != nullptr)) {
    Dispatch(std::move(call));
  } else if (call.done != nullptr) {
    call.done(admitted.ok() ? Died(options_.device, "before") : admitted);
  }
}

absl::Status ExecutorProcess::Loop::Admit(const Call& call) {
  if (shutting_down_) {
    return absl::UnavailableError("The executors are shut down.");
  }
  if (calls_.size() >= kMaxCalls) {
    return absl::ResourceExhaustedError(
        fmt::format("Too many calls wait for the executor of {} (allowed: {}). "
                    "Retry later.",
                    options_.device, kMaxCalls));
  }
  const absl::Status usable = CheckHealth(call);
  if (!usable.ok()) return usable;
  return call.starts_process ? EnsureRunning() : absl::OkStatus();
}

absl::Status ExecutorProcess::Loop::CheckHealth(const Call& call) const {
  MutexLock lock(mutex_);
  if (call.starts_process && !stuck_pids_.empty()) {
    return Stuck(options_.device, Problem());
  }
  if (call.request.has_execute() && Clock::now() < unhealthy_until_) {
    return Unhealthy(options_.device, unhealthy_reason_);
  }
  return absl::OkStatus();
}

absl::Status ExecutorProcess::Loop::EnsureRunning() {
  if (channel_ != nullptr) return absl::OkStatus();
  if (Clock::now() < refused_until_) return refusal_;
  return StartProcess();
}

absl::Status ExecutorProcess::Loop::StartProcess() {
  ChildProcess::Options process;
  process.executable = options_.executable;
  process.arguments = {"--role",   "executor",
                       "--device", options_.device,
                       "--fd",     std::to_string(kChildSocket)};
  process.environment = WholeEnvironment();
  process.kill_signal = options_.kill_signal;
  auto channel = ChildChannel::Start(
      &loop_, process, [this](ipc::Reply reply) { OnReply(std::move(reply)); },
      [this](const std::string& cause) {
        Die(cause, Died(options_.device, cause));
      });
  if (!channel.ok()) return channel.status();
  channel_ = *std::move(channel);
  ++generation_;
  ready_ = false;
  SetState(generation_ == 1 ? "starting" : "restarting");
  return absl::OkStatus();
}

void ExecutorProcess::Loop::Dispatch(Call call) {
  ipc::Request request = call.request;
  absl::Status status = ToProcessIds(&request);
  if (status.ok() && request.has_execute()) {
    ipc::Execute* execute = request.mutable_execute();
    if (sent_keys_.count(execute->key()) == 0) {
      execute->set_artifact(*call.artifact);
      call.sent_artifact = true;
    }
  }
  request.set_id(next_call_++);
  if (status.ok()) {
    status = channel_->Send(request, std::move(call.descriptor));
  }
  if (!status.ok()) {
    call.done(status);
    return;
  }
  if (request.has_execute()) sent_keys_.insert(request.execute().key());
  if (request.has_end_session()) return;  // has no reply
  call.request.set_id(request.id());
  calls_.push_back(std::move(call));
  if (calls_.size() == 1) ArmDeadline();
}

absl::Status ExecutorProcess::Loop::ToProcessIds(ipc::Request* request) const {
  const auto to_process_id = [this](uint64_t memory) -> uint64_t {
    const bool alive = memory >> kGenerationShift == generation_;
    return alive ? memory & kProcessIdMask : 0;
  };
  if (request->has_close()) {
    const uint64_t id = to_process_id(request->close().memory());
    if (id == 0) return Died(options_.device, "and its memory with it");
    request->mutable_close()->set_memory(id);
  }
  if (!request->has_execute()) return absl::OkStatus();
  for (ipc::SlotBinding& slot : *request->mutable_execute()->mutable_slots()) {
    const uint64_t id = to_process_id(slot.memory());
    if (id == 0) return Died(options_.device, "and its memory with it");
    slot.set_memory(id);
  }
  return absl::OkStatus();
}

void ExecutorProcess::Loop::ArmDeadline() {
  loop_.CancelTimer(std::exchange(deadline_, 0));
  if (calls_.empty()) return;
  const bool executes = ready_ && calls_.front().request.has_execute();
  deadline_ =
      loop_.After(executes ? options_.execute_deadline : kControlDeadline,
                  [this] { OnDeadline(); });
}

void ExecutorProcess::Loop::OnReply(ipc::Reply reply) {
  if (!ready_) {
    OnFirstReply(reply);
    return;
  }
  if (calls_.empty() || reply.id() != calls_.front().request.id()) {
    const std::string reason = "it answered what was not asked";
    Die(reason, Died(options_.device, reason));
    return;
  }
  if (reply.fatal()) {
    Die(reply.failure().message(),
        Died(options_.device, reply.failure().message()));
    return;
  }
  Call call = std::move(calls_.front());
  calls_.pop_front();
  ArmDeadline();
  if (reply.has_need_artifact() && !call.sent_artifact) {
    sent_keys_.erase(call.request.execute().key());
    Dispatch(std::move(call));
    return;
  }
  if (reply.has_opened()) {
    const uint64_t memory = reply.opened().memory();
    reply.mutable_opened()->set_memory(generation_ << kGenerationShift |
                                       (memory & kProcessIdMask));
  }
  if (reply.has_failure()) {
    call.done(FromProto(reply.failure()));
  } else {
    call.done(std::move(reply));
  }
}

absl::Status ExecutorProcess::Loop::CheckFirst(const ipc::Reply& reply) {
  if (reply.has_failure()) return FromProto(reply.failure());
  if (!reply.has_ready()) {
    return absl::InternalError("The executor starts with nonsense.");
  }
  const std::string& uuid = reply.ready().uuid();
  if (!uuid_.has_value()) uuid_ = uuid;
  if (uuid == *uuid_) return absl::OkStatus();
  return OtherDevice(options_.device, uuid, *uuid_);
}

void ExecutorProcess::Loop::OnFirstReply(const ipc::Reply& reply) {
  const absl::Status usable = CheckFirst(reply);
  if (usable.ok()) {
    ready_ = true;
    SetMissing("");
    SetState("ready");
    ArmDeadline();
    return;
  }
  // The device is not there: no death, and nobody has memory in it.
  refusal_ = usable;
  refused_until_ = Clock::now() + kRefusalPeriod;
  DropProcess();
  SetState("idle");
  SetMissing(std::string(refusal_.message()));
  FailCalls(refusal_, refusal_);
}

void ExecutorProcess::Loop::OnDeadline() {
  const bool executes = ready_ && calls_.front().request.has_execute();
  const auto limit = executes ? options_.execute_deadline : kControlDeadline;
  const std::string reason =
      fmt::format("killed: a call took longer than {} ms", limit.count());
  Die(reason,
      absl::DeadlineExceededError(fmt::format(
          "The call takes too long; the executor of {} was {}. Register "
          "buffers again.",
          options_.device, reason)));
}

void ExecutorProcess::Loop::Die(const std::string& reason,
                                const absl::Status& oldest) {
  DropProcess();
  SetState("idle");
  RecordDeath(reason);
  if (options_.on_death != nullptr) options_.on_death(reason);
  FailCalls(oldest, Died(options_.device, reason));
}

void ExecutorProcess::Loop::FailCalls(const absl::Status& oldest,
                                      const absl::Status& others) {
  const std::deque<Call> calls = std::exchange(calls_, {});
  for (size_t i = 0; i < calls.size(); ++i) {
    calls[i].done(i == 0 ? oldest : others);
  }
}

void ExecutorProcess::Loop::RecordDeath(const std::string& reason) {
  const Clock::time_point now = Clock::now();
  deaths_.push_back(now);
  while (deaths_.front() + options_.death_window < now) deaths_.pop_front();
  if (static_cast<int>(deaths_.size()) < options_.max_deaths) return;
  deaths_.clear();
  {
    MutexLock lock(mutex_);
    unhealthy_until_ = now + options_.unhealthy_period;
    unhealthy_reason_ = reason;
  }
  PublishHealth();
  loop_.After(options_.unhealthy_period, [this] { PublishHealth(); });
}

void ExecutorProcess::Loop::DropProcess() {
  loop_.CancelTimer(std::exchange(deadline_, 0));
  AwaitEnd();
  channel_.reset();
  ready_ = false;
  sent_keys_.clear();
}

void ExecutorProcess::Loop::AwaitEnd() {
  const int pid = channel_ == nullptr ? 0 : channel_->pid();
  if (pid == 0) return;
  const EventLoop::Id limit =
      loop_.After(options_.kill_limit, [this, pid] { SetStuck(pid, true); });
  channel_->WhenReaped([this, pid, limit] {
    loop_.CancelTimer(limit);
    SetStuck(pid, false);
  });
}

void ExecutorProcess::Loop::SetStuck(int pid, bool stuck) {
  {
    MutexLock lock(mutex_);
    if (stuck) {
      stuck_pids_.insert(pid);
    } else {
      stuck_pids_.erase(pid);
    }
  }
  PublishHealth();
}

void ExecutorProcess::Loop::SetMissing(const std::string& reason) {
  {
    MutexLock lock(mutex_);
    missing_reason_ = reason;
  }
  PublishHealth();
}

std::string ExecutorProcess::Loop::Problem() const {
  if (!stuck_pids_.empty()) {
    return fmt::format("its process {} does not end, {} ms after SIGKILL",
                       *stuck_pids_.begin(), options_.kill_limit.count());
  }
  if (Clock::now() < unhealthy_until_) return unhealthy_reason_;
  return missing_reason_;
}

void ExecutorProcess::Loop::PublishHealth() {
  std::string problem;
  {
    MutexLock lock(mutex_);
    problem = Problem();
  }
  if (problem == published_problem_) return;
  published_problem_ = problem;
  if (options_.on_health != nullptr) options_.on_health(problem);
}

void ExecutorProcess::Loop::Shutdown() {
  shutting_down_ = true;
  DropProcess();
  const auto status = absl::UnavailableError("The executors are shut down.");
  FailCalls(status, status);
}

void ExecutorProcess::Loop::SetState(const std::string& state) {
  MutexLock lock(mutex_);
  state_ = state;
  pid_ = channel_ == nullptr ? 0 : channel_->pid();
}

}  // namespace kiln
