#ifndef KILN_CACHE_SINGLE_FLIGHT_LRU_H_
#define KILN_CACHE_SINGLE_FLIGHT_LRU_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cache/mutex.h"

namespace kiln {

// Values in memory by key, least recently used ones evicted by size, and at
// most one producer per missing key: the first to ask leads, the others wait
// for its result. A failed result is handed to the waiters and forgotten.
// Thread-safe; callbacks run without the lock, on the thread that completes.
template <typename Value>
class SingleFlightLru {
 public:
  using Shared = std::shared_ptr<const Value>;
  using Waiter = std::function<void(const absl::StatusOr<Shared>&)>;

  enum class Outcome { kHit, kLead, kJoined };
  struct Lookup {
    Outcome outcome;
    Shared value;            // kHit
    uint64_t waiter_id = 0;  // kLead, kJoined
  };
  struct Counters {
    int64_t hits = 0, misses = 0, joined = 0, evictions = 0;
    int64_t entries = 0, size_bytes = 0;
  };

  // `size_of` gives the bytes that a value counts for. A value larger than
  // the limit is handed out and not kept.
  SingleFlightLru(int64_t limit_bytes,
                  std::function<int64_t(const Value&)> size_of)
      : limit_bytes_(limit_bytes), size_of_(std::move(size_of)) {}
  SingleFlightLru(const SingleFlightLru&) = delete;
  SingleFlightLru& operator=(const SingleFlightLru&) = delete;

  // kHit: `waiter` is dropped. kLead: the caller must produce the value and
  // call Complete(key, ...) exactly once, whatever happens. kLead and kJoined:
  // `waiter` is called once with the result, unless it was cancelled.
  Lookup Find(const std::string& key, Waiter waiter) KILN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (Shared value = Use(key); value != nullptr) {
      ++counters_.hits;
      return {Outcome::kHit, std::move(value), 0};
    }
    Flight& flight = flights_[key];
    const bool leads = flight.leaders == 0 || flight.waiters.empty();
    flight.leaders += leads ? 1 : 0;
    ++(leads ? counters_.misses : counters_.joined);
    const uint64_t id = ++last_waiter_id_;
    flight.waiters.emplace_back(id, std::move(waiter));
    return {leads ? Outcome::kLead : Outcome::kJoined, nullptr, id};
  }

  // Only looks; never leads. Marks a hit as used.
  Shared Peek(const std::string& key) KILN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    Shared value = Use(key);
    counters_.hits += value != nullptr ? 1 : 0;
    return value;
  }

  // Ends the flight of `key`: stores a value, calls the waiters. An error is
  // dropped if another leader of the key is under way (see Cancel).
  void Complete(const std::string& key, const absl::StatusOr<Shared>& result)
      KILN_EXCLUDES(mutex_) {
    const int64_t size = result.ok() ? size_of_(**result) : 0;
    std::vector<std::pair<uint64_t, Waiter>> waiters;
    {
      MutexLock lock(mutex_);
      if (result.ok()) Store(key, *result, size);
      waiters = Land(key, result.ok());
    }
    for (const auto& waiter : waiters) waiter.second(result);
  }

  // Forgets a waiter. True if it was the last one of its flight, whose work is
  // then pointless: the caller may stop it, and Complete must still follow.
  // Who asks for the key before that leads anew, and is not answered with the
  // error of the work that was stopped. False for unknown ids.
  bool Cancel(const std::string& key, uint64_t waiter_id)
      KILN_EXCLUDES(mutex_) {
    Waiter dropped;  // destroyed without the lock
    MutexLock lock(mutex_);
    const auto flight = flights_.find(key);
    if (flight == flights_.end()) return false;
    auto& waiters = flight->second.waiters;
    for (auto waiter = waiters.begin(); waiter != waiters.end(); ++waiter) {
      if (waiter->first != waiter_id) continue;
      dropped = std::move(waiter->second);
      waiters.erase(waiter);
      return waiters.empty();
    }
    return false;
  }

  void Erase(const std::string& key) KILN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    Forget(key);
  }

  // Forgets the values, not the flights.
  void Clear() KILN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    by_key_.clear();
    order_.clear();
    size_bytes_ = 0;
  }

  Counters counters() const KILN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    Counters counters = counters_;
    counters.entries = static_cast<int64_t>(order_.size());
    counters.size_bytes = size_bytes_;
    return counters;
  }

 private:
  struct Entry {
    std::string key;
    Shared value;
    int64_t size_bytes;
  };
  // More than one leader only while work that was given up has not ended.
  struct Flight {
    int leaders = 0;
    std::vector<std::pair<uint64_t, Waiter>> waiters;
  };

  Shared Use(const std::string& key) KILN_REQUIRES(mutex_) {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second);
    return found->second->value;
  }

  void Store(const std::string& key, const Shared& value, int64_t size_bytes)
      KILN_REQUIRES(mutex_) {
    Forget(key);
    if (size_bytes > limit_bytes_) return;
    while (size_bytes_ + size_bytes > limit_bytes_) {
      Forget(std::string(order_.back().key));
      ++counters_.evictions;
    }
    order_.push_front({key, value, size_bytes});
    by_key_[key] = order_.begin();
    size_bytes_ += size_bytes;
  }

  // One leader of the flight has landed: returns the waiters to answer.
  std::vector<std::pair<uint64_t, Waiter>> Land(const std::string& key, bool ok)
      KILN_REQUIRES(mutex_) {
    std::vector<std::pair<uint64_t, Waiter>> waiters;
    const auto flight = flights_.find(key);
    if (flight == flights_.end()) return waiters;
    --flight->second.leaders;
    const bool last = flight->second.leaders <= 0;
    if (ok || last) waiters = std::move(flight->second.waiters);
    if (last) {
      flights_.erase(flight);
    } else if (ok) {
      flight->second.waiters.clear();
    }
    return waiters;
  }

  void Forget(const std::string& key) KILN_REQUIRES(mutex_) {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return;
    size_bytes_ -= found->second->size_bytes;
    order_.erase(found->second);
    by_key_.erase(found);
  }

  const int64_t limit_bytes_;
  const std::function<int64_t(const Value&)> size_of_;

  mutable Mutex mutex_;
  std::list<Entry> order_ KILN_GUARDED_BY(mutex_);  // most recent first
  std::unordered_map<std::string, typename std::list<Entry>::iterator> by_key_
      KILN_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Flight> flights_ KILN_GUARDED_BY(mutex_);
  int64_t size_bytes_ KILN_GUARDED_BY(mutex_) = 0;
  uint64_t last_waiter_id_ KILN_GUARDED_BY(mutex_) = 0;
  Counters counters_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln

#endif  // KILN_CACHE_SINGLE_FLIGHT_LRU_H_
