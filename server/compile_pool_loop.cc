#include "server/compile_pool_loop.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <utility>

#include "server/process_converter.h"
#include "server/request_prefix.h"

namespace kiln {
namespace {

// A fresh worker costs 100 ms; what NVRTC may leak in this many is small.
constexpr int kJobsPerWorker = 256;
constexpr int64_t kMaxResidentBytes = int64_t{1} << 30;
// A job that killed two workers is taken to be the killer.
constexpr int kMaxDeathsPerJob = 2;
// Starts that fail this often in a row are not bad luck.
constexpr int kMaxFailedStarts = 3;
constexpr std::chrono::milliseconds kStartBackoff{1'000};

int64_t Microseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration)
      .count();
}

// Nothing of the daemon's environment may reach NVRTC, which reads options
// and cache settings from it.
std::vector<std::string> WorkerEnvironment() {
  std::vector<std::string> environment;
  for (const char* name : {"PATH", "LD_LIBRARY_PATH"}) {
    const char* value = std::getenv(name);
    if (value != nullptr)
      environment.push_back(fmt::format("{}={}", name, value));
  }
  return environment;
}

absl::Status QueueFull(int limit) {
  return absl::ResourceExhaustedError(fmt::format(
      "The queue of compiles is full (allowed: {} waiting). Retry later.",
      limit));
}

absl::Status PastDeadline(std::chrono::milliseconds deadline) {
  return absl::DeadlineExceededError(
      fmt::format("The compile takes too long and was killed (allowed: {} ms).",
                  deadline.count()));
}

absl::Status WorkerDied(const std::string& cause) {
  return absl::UnavailableError(fmt::format(
      "The compile worker died twice on this plan (last: {}).", cause));
}

absl::Status NoWorker(const std::string& cause) {
  return absl::UnavailableError(
      fmt::format("No compile worker comes up (last: {}).", cause));
}

}  // namespace

CompilePool::Loop::Loop(Options options) : options_(std::move(options)) {
  loop_.Post([this] { Scale(); });
}

CompilePool::Loop::~Loop() {
  loop_.Post([this] { Shutdown(); });
  loop_.Stop();
}

uint64_t CompilePool::Loop::Submit(CompileRequest request,
                                   const std::string& request_id, Done done) {
  const uint64_t id = next_job_++;
  auto job = std::make_shared<Job>();
  job->id = id;
  job->request = std::move(request);
  job->request_id = request_id;
  job->done = std::move(done);
  job->submitted = Clock::now();
  loop_.Post([this, job] { Enqueue(std::move(*job)); });
  return id;
}

void CompilePool::Loop::Cancel(uint64_t job) {
  loop_.Post([this, job] { CancelJob(job); });
}

void CompilePool::Loop::WhenArchitecturesKnown(
    std::function<void(const std::vector<int>&)> known) {
  std::vector<int> architectures;
  {
    MutexLock lock(mutex_);
    if (!architectures_) return waiting_.push_back(std::move(known));
    architectures = *architectures_;
  }
  known(architectures);
}

// A worker that comes up later may know what the first, which did not, could
// not say.
void CompilePool::Loop::KnowArchitectures(std::vector<int> architectures) {
  std::vector<std::function<void(const std::vector<int>&)>> waiting;
  {
    MutexLock lock(mutex_);
    if (!architectures_ || !architectures.empty()) {
      architectures_ = architectures;
    }
    waiting.swap(waiting_);
  }
  for (const auto& known : waiting) known(architectures);
}

CompilePool::Counters CompilePool::Loop::counters() const {
  MutexLock lock(mutex_);
  return counters_;
}

void CompilePool::Loop::Enqueue(Job job) {
  if (shutting_down_) {
    job.done(absl::UnavailableError("The compile workers are shut down."));
    return;
  }
  if (static_cast<int>(queue_.size()) >= options_.max_queued) {
    job.done(QueueFull(options_.max_queued));
    return;
  }
  queue_.push_back(std::move(job));
  Dispatch();
}

void CompilePool::Loop::CancelJob(uint64_t id) {
  for (auto job = queue_.begin(); job != queue_.end(); ++job) {
    if (job->id != id) continue;
    const Done done = std::move(job->done);
    queue_.erase(job);
    UpdateGauges();
    done(absl::CancelledError("The compile is cancelled."));
    return;
  }
  for (auto& [worker_id, worker] : workers_) {
    if (!worker.job.has_value() || worker.job->id != id) continue;
    std::optional<Job> job = Remove(worker_id);
    Count(&Counters::killed);
    Dispatch();
    job->done(absl::CancelledError("The compile is cancelled."));
    return;
  }
}

void CompilePool::Loop::Shutdown() {
  shutting_down_ = true;
  std::deque<Job> jobs = std::exchange(queue_, {});
  while (!workers_.empty()) {
    std::optional<Job> job = Remove(workers_.begin()->first);
    if (job.has_value()) jobs.push_back(*std::move(job));
  }
  UpdateGauges();
  KnowArchitectures({});
  for (Job& job : jobs) {
    job.done(absl::UnavailableError("The compile workers are shut down."));
  }
}

void CompilePool::Loop::Dispatch() {
  for (auto& [id, worker] : workers_) {
    while (!queue_.empty() && worker.ready && !worker.job.has_value()) {
      Assign(id);
    }
  }
  Scale();
}

void CompilePool::Loop::Assign(uint64_t worker_id) {
  Worker& worker = workers_.at(worker_id);
  Job job = std::move(queue_.front());
  queue_.pop_front();
  job.queue_us = Microseconds(Clock::now() - job.submitted);

  ipc::Request request;
  request.set_id(job.id);
  *request.mutable_compile() = ToProto(job.request, options_.soft_deadline);
  absl::Status sent = worker.channel->Send(request);
  if (!sent.ok()) {
    job.done(sent);
    return;
  }
  worker.job = std::move(job);
  ++worker.jobs_taken;
  Count(&Counters::compiles);
  SetTimer(worker_id, options_.hard_deadline, &Loop::OnHardDeadline);
}

void CompilePool::Loop::Scale() {
  if (shutting_down_) return;
  size_t starting = 0;
  for (const auto& [id, worker] : workers_) starting += worker.ready ? 0 : 1;
  while (!backing_off_ &&
         static_cast<int>(workers_.size()) < options_.max_workers &&
         (workers_.empty() || queue_.size() > starting)) {
    if (StartWorker()) ++starting;
  }
  UpdateGauges();
}

bool CompilePool::Loop::StartWorker() {
  const uint64_t id = next_worker_++;
  ChildProcess::Options process;
  process.executable = options_.executable;
  process.arguments = {"--role", "worker", "--fd",
                       std::to_string(kChildSocket)};
  if (!options_.toolchain.library_path.empty()) {
    process.arguments.insert(process.arguments.end(),
                             {"--nvrtc", options_.toolchain.library_path});
  }
  process.environment = WorkerEnvironment();
  auto channel = ChildChannel::Start(
      &loop_, process,
      [this, id](ipc::Reply reply) { OnReply(id, std::move(reply)); },
      [this, id](const std::string& cause) { OnEnd(id, cause); });
  if (!channel.ok()) {
    NoWorkerStarts(std::string(channel.status().message()));
    return false;
  }
  workers_[id].channel = *std::move(channel);
  Count(&Counters::started);
  SetTimer(id, options_.start_deadline, &Loop::OnStartDeadline);
  return true;
}

void CompilePool::Loop::NoWorkerStarts(const std::string& cause) {
  spdlog::warn("A compile worker does not come up: {}.", cause);
  KnowArchitectures({});
  if (++failed_starts_ < kMaxFailedStarts) return;
  backing_off_ = true;
  loop_.After(kStartBackoff, [this] {
    backing_off_ = false;
    if (!queue_.empty()) Dispatch();
  });
  for (const auto& [id, worker] : workers_) {
    if (worker.ready) return;  // the queue still moves
  }
  const std::deque<Job> jobs = std::exchange(queue_, {});
  for (const Job& job : jobs) job.done(NoWorker(cause));
}

void CompilePool::Loop::OnReply(uint64_t worker_id, ipc::Reply reply) {
  const Worker& worker = workers_.at(worker_id);
  const bool answers = worker.job.has_value() && reply.id() == worker.job->id &&
                       (reply.has_compiled() || reply.has_failure());
  if (!worker.ready && reply.has_ready()) {
    OnReady(worker_id, reply.ready());
  } else if (answers) {
    OnAnswer(worker_id, std::move(reply));
  } else {
    OnEnd(worker_id, "an answer to no question");
  }
}

void CompilePool::Loop::OnReady(uint64_t worker_id, const ipc::Ready& ready) {
  workers_.at(worker_id).ready = true;
  KnowArchitectures(
      {ready.architectures().begin(), ready.architectures().end()});
  BecomeIdle(worker_id);
  Dispatch();
}

void CompilePool::Loop::OnAnswer(uint64_t worker_id, ipc::Reply reply) {
  failed_starts_ = 0;
  Worker& worker = workers_.at(worker_id);
  const Job job = *std::exchange(worker.job, std::nullopt);
  absl::StatusOr<Outcome> outcome = Outcome();
  if (reply.has_failure()) {
    outcome = FromProto(reply.failure());
  } else {
    outcome->artifact =
        std::move(*reply.mutable_compiled()->mutable_artifact());
    outcome->queue_us = job.queue_us;
    outcome->generate_us = reply.compiled().generate_us();
    outcome->nvrtc_us = reply.compiled().nvrtc_us();
  }
  // NVRTC that gave up half-way is not asked again.
  const bool spent = worker.jobs_taken >= kJobsPerWorker ||
                     reply.resident_bytes() > kMaxResidentBytes ||
                     absl::IsDeadlineExceeded(outcome.status()) ||
                     absl::IsResourceExhausted(outcome.status());
  if (spent) {
    Remove(worker_id);
    Count(&Counters::recycled);
  } else {
    BecomeIdle(worker_id);
  }
  Dispatch();
  job.done(std::move(outcome));
}

void CompilePool::Loop::OnEnd(uint64_t worker_id, const std::string& cause) {
  const bool served = workers_.at(worker_id).jobs_taken > 0;
  std::optional<Job> job = Remove(worker_id);
  Count(&Counters::crashed);
  if (!served) {
    NoWorkerStarts(cause);
  } else {
    spdlog::warn("{}A compile worker died and is replaced: {}.",
                 RequestPrefix(job.has_value() ? job->request_id : ""), cause);
  }
  if (job.has_value()) {
    RetryOrFail(*std::move(job), cause);
  } else {
    Dispatch();
  }
}

void CompilePool::Loop::RetryOrFail(Job job, const std::string& cause) {
  if (++job.deaths < kMaxDeathsPerJob) {
    queue_.push_front(std::move(job));
    Dispatch();
    return;
  }
  Dispatch();
  job.done(WorkerDied(cause));
}

void CompilePool::Loop::OnStartDeadline(uint64_t worker_id) {
  OnEnd(worker_id,
        fmt::format("not ready after {} ms", options_.start_deadline.count()));
}

void CompilePool::Loop::OnHardDeadline(uint64_t worker_id) {
  const std::optional<Job> job = Remove(worker_id);
  Count(&Counters::killed);
  Dispatch();
  job->done(PastDeadline(options_.hard_deadline));
}

void CompilePool::Loop::OnQuiet(uint64_t worker_id) {
  if (workers_.size() == 1) return;
  Remove(worker_id);
  Count(&Counters::recycled);
  UpdateGauges();
}

void CompilePool::Loop::BecomeIdle(uint64_t worker_id) {
  SetTimer(worker_id, options_.idle_quiet, &Loop::OnQuiet);
}

std::optional<CompilePool::Loop::Job> CompilePool::Loop::Remove(
    uint64_t worker_id) {
  const auto found = workers_.find(worker_id);
  loop_.CancelTimer(found->second.timer);
  std::optional<Job> job = std::move(found->second.job);
  workers_.erase(found);
  return job;
}

void CompilePool::Loop::SetTimer(uint64_t worker_id,
                                 std::chrono::milliseconds delay,
                                 void (Loop::*expired)(uint64_t)) {
  Worker& worker = workers_.at(worker_id);
  loop_.CancelTimer(worker.timer);
  worker.timer = loop_.After(
      delay, [this, worker_id, expired] { (this->*expired)(worker_id); });
}

void CompilePool::Loop::Count(int64_t Counters::*counter) {
  MutexLock lock(mutex_);
  ++(counters_.*counter);
}

void CompilePool::Loop::UpdateGauges() {
  MutexLock lock(mutex_);
  counters_.workers = static_cast<int>(workers_.size());
  counters_.queued = static_cast<int64_t>(queue_.size());
}

}  // namespace kiln
