#ifndef KILN_SERVER_ARTIFACT_PROVIDER_H_
#define KILN_SERVER_ARTIFACT_PROVIDER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "cache/disk_cache.h"
#include "cache/mutex.h"
#include "cache/single_flight_lru.h"
#include "server/compile_pool.h"
#include "server/event_loop.h"
#include "server/keyed_request.h"
#include "server/stored_artifact.h"

namespace kiln {

// Artifacts by key: from memory, from disk, or compiled, each key once at a
// time. A compiled artifact is on disk before anybody is answered; one in
// memory whose file is gone is stored again when it is asked for. Those of the
// variant eager are made of one that is compiled once for each target, and are
// kept in memory alone: making them takes less time than reading. Thread-safe.
class ArtifactProvider {
 public:
  using Shared = std::shared_ptr<const StoredArtifact>;
  struct Found {
    Shared artifact;
    v1::Source source = v1::SOURCE_UNSPECIFIED;
  };
  using Done = std::function<void(absl::StatusOr<Found>)>;
  // Who asks, for the log.
  struct Caller {
    std::string request_id;
    bool prewarm = false;
  };
  // One Get under way.
  struct Ticket {
    std::string key;
    uint64_t waiter_id = 0;  // 0: answered already
  };
  struct Counters {
    SingleFlightLru<StoredArtifact>::Counters memory;
    int64_t disk_hits = 0;
    int64_t misses = 0;
    int64_t compiles = 0;  // started, in workers or for the cpu target
  };

  // `disk` must outlive the provider. `pool` may be null: only the cpu target
  // compiles.
  ArtifactProvider(DiskCache& disk, std::shared_ptr<CompilePool> pool);
  // Answers everything that is under way.
  ~ArtifactProvider();
  ArtifactProvider(const ArtifactProvider&) = delete;
  ArtifactProvider& operator=(const ArtifactProvider&) = delete;

  // Finds or compiles. `done` is called exactly once, perhaps before this
  // returns, and must not block; not at all after Cancel. What is compiled is
  // logged with the caller who asked first.
  Ticket Get(const KeyedRequest& keyed, const Caller& caller, Done done);

  // Who gives up last stops the compile.
  void Cancel(const Ticket& ticket);

  // Finds, or answers NOT_FOUND. Never compiles, never waits for a compile.
  absl::StatusOr<Found> Lookup(const std::string& key,
                               const std::string& request_id);

  // Where the artifact is now; SOURCE_UNSPECIFIED: nowhere.
  v1::Source Where(const std::string& key);

  // Forgets entries in memory; all if `keys` is empty.
  void Forget(const std::vector<std::string>& keys);

  // Calls `known` with the architectures that the compiler knows, as
  // CompilePool does; none if there is no compiler.
  void WhenArchitecturesKnown(
      std::function<void(const std::vector<int>&)> known);

  // Ends compiling: jobs under way are answered UNAVAILABLE.
  void StopCompiling();

  Counters counters() const;
  CompilePool::Counters pool_counters() const;

 private:
  // What a leader has under way, for Cancel.
  struct Work {
    uint64_t job = 0;
    bool cancelled = false;
  };

  // What is to be compiled, since when, and for whom.
  struct Job {
    KeyedRequest keyed;
    Caller caller;
    std::chrono::steady_clock::time_point start;
  };

  void Produce(const KeyedRequest& keyed, const Caller& caller);
  void CompileInPool(const Job& job);
  void CompileHere(const Job& job);
  void MakeOfEagerModule(const Job& job, const CompileRequest& module_request);
  void Store(const Job& job, CompilePool::Outcome outcome);
  void AnswerFromMemory(const KeyedRequest& keyed, Shared value, Done done);
  bool IsToBeStoredAgain(const KeyedRequest& keyed, const Shared& value);
  void StoreAgain(const KeyedRequest& keyed, const Shared& value);
  static void LogCompile(const Job& job, const StoredArtifact& artifact);
  Shared FromDisk(const std::string& key, const std::string& request_id);
  std::shared_ptr<CompilePool> pool() const;

  DiskCache& disk_;
  SingleFlightLru<StoredArtifact> memory_;
  std::atomic<int64_t> disk_hits_{0};
  std::atomic<int64_t> misses_{0};
  std::atomic<int64_t> compiles_{0};

  mutable Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Work>> work_
      KILN_GUARDED_BY(mutex_);
  std::shared_ptr<CompilePool> pool_ KILN_GUARDED_BY(mutex_);
  // Until then nothing is stored again: it failed.
  std::chrono::steady_clock::time_point store_again_from_
      KILN_GUARDED_BY(mutex_);

  EventLoop store_loop_;  // writes to disk, off gRPC's and the pool's threads
};

}  // namespace kiln

#endif  // KILN_SERVER_ARTIFACT_PROVIDER_H_
