#include "server/artifact_provider.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>

#include "cache/entry_format.h"
#include "jit/compile/compile_plan.h"
#include "jit/compile/eager_plan.h"
#include "jit/compile/tuning.h"
#include "proto/artifact_converter.h"
#include "server/errors.h"
#include "server/request_prefix.h"

namespace kiln {
namespace {

// Some thousand artifacts of the usual 50 KiB.
constexpr int64_t kMemoryLimitBytes = int64_t{256} << 20;
// After a full disk, or while another process writes to the directory.
constexpr std::chrono::seconds kStoreAgainAfter{60};
// Of a key in the log: enough for `kiln cache show`.
constexpr size_t kShownKeyDigits = 12;

int64_t MicrosecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now() - start)
      .count();
}

// Whether artifacts of the request are made of the eager kernels', and kept in
// memory alone.
bool IsMadeOfEagerModule(const KeyedRequest& keyed) {
  const CompileRequest& request = keyed.request;
  return request.variant == kEagerVariant &&
         keyed.key_text !=
             KeyText(EagerModuleRequest(request.target, request.toolchain));
}

}  // namespace

ArtifactProvider::ArtifactProvider(DiskCache& disk,
                                   std::shared_ptr<CompilePool> pool)
    : disk_(disk),
      memory_(kMemoryLimitBytes, SizeInMemory),
      pool_(std::move(pool)),
      store_loop_("kiln-store") {}

ArtifactProvider::~ArtifactProvider() {
  StopCompiling();
  store_loop_.Stop();
}

std::shared_ptr<CompilePool> ArtifactProvider::pool() const {
  MutexLock lock(mutex_);
  return pool_;
}

void ArtifactProvider::StopCompiling() {
  std::shared_ptr<CompilePool> pool;
  MutexLock lock(mutex_);
  // Destroyed after the lock: its answers come back here.
  pool.swap(pool_);
}

ArtifactProvider::Ticket ArtifactProvider::Get(const KeyedRequest& keyed,
                                               const Caller& caller,
                                               Done done) {
  const auto shared_done = std::make_shared<Done>(std::move(done));
  const auto lookup = memory_.Find(
      keyed.key, [shared_done](const absl::StatusOr<Shared>& result) {
        if (!result.ok()) return (*shared_done)(result.status());
        (*shared_done)(Found{*result, (*result)->source});
      });
  using Outcome = SingleFlightLru<StoredArtifact>::Outcome;
  if (lookup.outcome == Outcome::kHit) {
    AnswerFromMemory(keyed, lookup.value, *shared_done);
    return {};
  }
  if (lookup.outcome == Outcome::kLead) Produce(keyed, caller);
  return {keyed.key, lookup.waiter_id};
}

void ArtifactProvider::AnswerFromMemory(const KeyedRequest& keyed, Shared value,
                                        Done done) {
  if (!IsToBeStoredAgain(keyed, value)) {
    return done(Found{std::move(value), v1::MEMORY});
  }
  store_loop_.Post([this, keyed, value = std::move(value), done] {
    StoreAgain(keyed, value);
    done(Found{value, v1::MEMORY});
  });
}

// Where there is room: no other entry is evicted for it.
bool ArtifactProvider::IsToBeStoredAgain(const KeyedRequest& keyed,
                                         const Shared& value) {
  if (disk_.Contains(keyed.key) || IsMadeOfEagerModule(keyed)) return false;
  const DiskCache::Counters disk = disk_.counters();
  const auto size = static_cast<int64_t>(
      value->bytes.size() + keyed.key_text.size() + kEntryOverheadBytes);
  if (disk.size_bytes + size > disk.limit_bytes) return false;
  MutexLock lock(mutex_);
  return store_again_from_ <= std::chrono::steady_clock::now();
}

void ArtifactProvider::StoreAgain(const KeyedRequest& keyed,
                                  const Shared& value) {
  if (memory_.Peek(keyed.key) != value) return;  // forgotten since
  disk_.Put(keyed.key, keyed.key_text, value->bytes);
  if (disk_.Contains(keyed.key)) return;
  MutexLock lock(mutex_);
  store_again_from_ = std::chrono::steady_clock::now() + kStoreAgainAfter;
}

void ArtifactProvider::Cancel(const Ticket& ticket) {
  if (ticket.waiter_id == 0) return;
  if (!memory_.Cancel(ticket.key, ticket.waiter_id)) return;
  uint64_t job = 0;
  {
    MutexLock lock(mutex_);
    const auto found = work_.find(ticket.key);
    if (found == work_.end()) return;
    found->second->cancelled = true;
    job = found->second->job;
  }
  const std::shared_ptr<CompilePool> compile_pool = pool();
  if (job != 0 && compile_pool) compile_pool->Cancel(job);
}

absl::StatusOr<ArtifactProvider::Found> ArtifactProvider::Lookup(
    const std::string& key, const std::string& request_id) {
  if (Shared value = memory_.Peek(key)) return Found{value, v1::MEMORY};
  Shared value = FromDisk(key, request_id);
  if (!value) return UnknownKey(key);
  // Into memory, unless a compile of the key does that anyway.
  const auto lookup = memory_.Find(key, [](const absl::StatusOr<Shared>&) {});
  if (lookup.outcome == SingleFlightLru<StoredArtifact>::Outcome::kLead) {
    memory_.Complete(key, value);
  }
  return Found{value, v1::DISK};
}

v1::Source ArtifactProvider::Where(const std::string& key) {
  if (memory_.Peek(key)) return v1::MEMORY;
  return disk_.Contains(key) ? v1::DISK : v1::SOURCE_UNSPECIFIED;
}

void ArtifactProvider::Forget(const std::vector<std::string>& keys) {
  if (keys.empty()) return memory_.Clear();
  for (const std::string& key : keys) memory_.Erase(key);
}

ArtifactProvider::Shared ArtifactProvider::FromDisk(
    const std::string& key, const std::string& request_id) {
  std::optional<DiskCache::Record> record = disk_.Get(key);
  if (!record) return nullptr;
  absl::StatusOr<StoredArtifact> stored =
      MakeStoredArtifact(std::move(record->payload));
  if (!stored.ok()) {
    spdlog::warn("{}Dropping the cache entry {}: {}", RequestPrefix(request_id),
                 key, std::string(stored.status().message()));
    const absl::Status purged = disk_.Purge({key}).status();
    if (!purged.ok()) spdlog::warn("{}", std::string(purged.message()));
    return nullptr;
  }
  ++disk_hits_;
  stored->source = v1::DISK;
  return std::make_shared<const StoredArtifact>(*std::move(stored));
}

void ArtifactProvider::Produce(const KeyedRequest& keyed,
                               const Caller& caller) {
  const Job job = {keyed, caller, std::chrono::steady_clock::now()};
  const CompileRequest& request = keyed.request;
  if (IsMadeOfEagerModule(keyed)) {
    ++misses_;
    return MakeOfEagerModule(
        job, EagerModuleRequest(request.target, request.toolchain));
  }
  if (Shared value = FromDisk(keyed.key, caller.request_id)) {
    return memory_.Complete(keyed.key, value);
  }
  ++misses_;
  if (request.target.is_cpu()) return CompileHere(job);
  CompileInPool(job);
}

void ArtifactProvider::MakeOfEagerModule(const Job& job,
                                         const CompileRequest& module_request) {
  KeyedRequest of_module;
  of_module.request = module_request;
  of_module.key_text = KeyText(module_request);
  of_module.key = KeyOf(of_module.key_text);
  Get(of_module, job.caller, [this, job](const absl::StatusOr<Found>& found) {
    if (!found.ok()) return memory_.Complete(job.keyed.key, found.status());
    const auto start = std::chrono::steady_clock::now();
    absl::StatusOr<Artifact> parsed = ParseArtifact(found->artifact->bytes);
    if (!parsed.ok()) return memory_.Complete(job.keyed.key, parsed.status());
    if (parsed->modules.empty()) {
      return memory_.Complete(
          job.keyed.key,
          absl::InternalError("The artifact of the eager kernels has none"));
    }
    const Artifact artifact = MakeEagerArtifact(
        job.keyed.request, std::move(parsed->modules.front()));
    absl::StatusOr<StoredArtifact> stored =
        MakeStoredArtifact(SerializeArtifact(artifact));
    if (!stored.ok()) return memory_.Complete(job.keyed.key, stored.status());
    stored->source = v1::COMPILED;
    stored->generate_us = MicrosecondsSince(start);
    LogCompile(job, *stored);
    memory_.Complete(job.keyed.key, std::make_shared<const StoredArtifact>(
                                        *std::move(stored)));
  });
}

void ArtifactProvider::CompileHere(const Job& job) {
  ++compiles_;
  CompilePlanTiming timing;
  const absl::StatusOr<Artifact> artifact =
      CompilePlan(job.keyed.request, nullptr, &timing);
  if (!artifact.ok()) return memory_.Complete(job.keyed.key, artifact.status());
  CompilePool::Outcome outcome;
  outcome.artifact = SerializeArtifact(*artifact);
  outcome.generate_us = timing.generate_us;
  store_loop_.Post([this, job, outcome] { Store(job, outcome); });
}

void ArtifactProvider::CompileInPool(const Job& job) {
  const std::shared_ptr<CompilePool> compile_pool = pool();
  if (!compile_pool) {
    return memory_.Complete(
        job.keyed.key,
        absl::UnavailableError("The daemon does not compile now"));
  }
  ++compiles_;
  const auto work = std::make_shared<Work>();
  {
    MutexLock lock(mutex_);
    work_[job.keyed.key] = work;
  }
  const auto finished = [this, job,
                         work](absl::StatusOr<CompilePool::Outcome> outcome) {
    {
      MutexLock lock(mutex_);
      const auto found = work_.find(job.keyed.key);
      if (found != work_.end() && found->second == work) work_.erase(found);
    }
    store_loop_.Post([this, job, outcome = std::move(outcome)] {
      if (!outcome.ok()) {
        return memory_.Complete(job.keyed.key, outcome.status());
      }
      Store(job, *outcome);
    });
  };
  const uint64_t id =
      compile_pool->Submit(job.keyed.request, job.caller.request_id, finished);
  bool cancelled = false;
  {
    MutexLock lock(mutex_);
    work->job = id;
    cancelled = work->cancelled;
  }
  if (cancelled) compile_pool->Cancel(id);
}

void ArtifactProvider::Store(const Job& job, CompilePool::Outcome outcome) {
  const KeyedRequest& keyed = job.keyed;
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<StoredArtifact> stored =
      MakeStoredArtifact(std::move(outcome.artifact));
  if (!stored.ok()) {
    return memory_.Complete(
        keyed.key, absl::InternalError("The compiled artifact is unreadable: " +
                                       std::string(stored.status().message())));
  }
  disk_.Put(keyed.key, keyed.key_text, stored->bytes);
  stored->source = v1::COMPILED;
  stored->queue_us = outcome.queue_us;
  stored->generate_us = outcome.generate_us;
  stored->nvrtc_us = outcome.nvrtc_us;
  stored->store_us = MicrosecondsSince(start);
  LogCompile(job, *stored);
  memory_.Complete(keyed.key,
                   std::make_shared<const StoredArtifact>(*std::move(stored)));
}

void ArtifactProvider::LogCompile(const Job& job,
                                  const StoredArtifact& artifact) {
  spdlog::info(
      "{}Compiled key={} target={} kernels={} nvrtc_ms={:.1f} total_ms={:.1f} "
      "source={}",
      RequestPrefix(job.caller.request_id),
      job.keyed.key.substr(0, kShownKeyDigits), ToString(artifact.target),
      artifact.kernels, artifact.nvrtc_us / 1e3,
      MicrosecondsSince(job.start) / 1e3,
      job.caller.prewarm ? "prewarm" : "client");
}

void ArtifactProvider::WhenArchitecturesKnown(
    std::function<void(const std::vector<int>&)> known) {
  const std::shared_ptr<CompilePool> compile_pool = pool();
  if (!compile_pool) return known({});
  compile_pool->WhenArchitecturesKnown(std::move(known));
}

ArtifactProvider::Counters ArtifactProvider::counters() const {
  return {memory_.counters(), disk_hits_, misses_, compiles_};
}

CompilePool::Counters ArtifactProvider::pool_counters() const {
  const std::shared_ptr<CompilePool> compile_pool = pool();
  return compile_pool ? compile_pool->counters() : CompilePool::Counters{};
}

}  // namespace kiln
