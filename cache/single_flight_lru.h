#ifndef KILN_CACHE_SINGLE_FLIGHT_LRU_H_
#define KILN_CACHE_SINGLE_FLIGHT_LRU_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

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
    Shared value;           // kHit
    uint64_t waiter_id = 0;  // kLead, kJoined
  };
  struct Counters {
    int64_t hits = 0, misses = 0, joined = 0, evictions = 0;
    int64_t entries = 0, size_bytes = 0;
  };

  // `size_of` gives the bytes that a value counts for.
  SingleFlightLru(int64_t limit_bytes,
                  std::function<int64_t(const Value&)> size_of);

  // kHit: `waiter` is dropped. kLead: the caller must produce the value and
  // call Complete(key, ...) exactly once, whatever happens. kLead and kJoined:
  // `waiter` is called once with the result, unless it was cancelled.
  Lookup Find(const std::string& key, Waiter waiter);

  // Only looks; never leads. Marks a hit as used.
  Shared Peek(const std::string& key);

  // Ends the flight of `key`: stores a value, calls the waiters.
  void Complete(const std::string& key, const absl::StatusOr<Shared>& result);

  // Forgets a waiter. True if it was the last one of its flight, whose work is
  // then pointless: the caller may stop it, and Complete must still follow.
  bool Cancel(const std::string& key, uint64_t waiter_id);

  void Erase(const std::string& key);
  void Clear();
  Counters counters() const;
};

}  // namespace kiln

#endif  // KILN_CACHE_SINGLE_FLIGHT_LRU_H_
