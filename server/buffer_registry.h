#ifndef KILN_SERVER_BUFFER_REGISTRY_H_
#define KILN_SERVER_BUFFER_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/artifact/artifact.h"
#include "server/execution_backend.h"

namespace kiln {

// Size of the range that starts at `offset_bytes` of a memory of
// `memory_bytes`: `size_bytes`, or the rest of the memory if that is 0.
//
// Errors: INVALID_ARGUMENT naming the field for a range that is negative,
// empty or not inside the memory.
absl::StatusOr<int64_t> ResolveRange(int64_t offset_bytes, int64_t size_bytes,
                                     int64_t memory_bytes);

// The buffers of one session: a table and its rules, no I/O. Not thread-safe.
//
// A call that uses buffers holds a lease. A buffer that is removed takes no
// new leases and is freed with the last one; the caller then closes its memory
// and runs its waiters.
class BufferRegistry {
 public:
  struct Buffer {
    std::string device;
    uint64_t memory = 0;   // id in the device's executor
    std::string identity;  // equal for the same memory; a secret, not logged
    int64_t offset_bytes = 0;
    int64_t size_bytes = 0;
  };
  struct Binding {
    int slot = 0;
    std::string buffer;
    int64_t offset_bytes = 0;  // of the tensor in the buffer
  };
  struct Bound {
    uint64_t lease = 0;
    std::vector<SlotBinding> slots;  // by slot
  };
  struct Freed {
    std::string device;
    std::optional<uint64_t> memory;  // to close; nothing if it was lost
    std::vector<std::function<void()>> waiters;
  };
  struct Info {
    std::string id;
    std::string device;
    int64_t size_bytes = 0;
    int leases = 0;
  };

  explicit BufferRegistry(int max_buffers) : max_buffers_(max_buffers) {}

  // Returns the buffer's id, 32 hexadecimal digits. `buffer` holds a range that
  // ResolveRange accepted. Errors: RESOURCE_EXHAUSTED; FAILED_PRECONDITION
  // after RemoveAll.
  absl::StatusOr<std::string> Add(Buffer buffer);

  // Checks every rule of ExecuteRequest and takes a lease.
  //
  // Errors: INVALID_ARGUMENT: a slot unbound or bound twice, a range outside
  // its buffer, a misaligned address, an output that overlaps anything bound;
  // FAILED_PRECONDITION: unknown buffer or one of another device; ABORTED: the
  // buffer was lost.
  absl::StatusOr<Bound> Bind(const std::string& device,
                             std::span<const Slot> slots,
                             std::span<const Binding> bindings);

  // Ends a lease; returns the buffers that this frees.
  std::vector<Freed> Release(uint64_t lease);

  // Removes a buffer. If calls use it, `waiter` is kept for Freed; if not, or
  // if there is no such buffer, it comes back at once.
  Freed Remove(const std::string& id, std::function<void()> waiter);

  // Removes every buffer and refuses new ones.
  std::vector<Freed> RemoveAll();

  // The executor of `device` died, and every memory with it.
  void MarkLost(const std::string& device);

  std::vector<Info> List() const;
  bool idle() const { return leases_.empty(); }

 private:
  struct Entry {
    Buffer buffer;
    int leases = 0;
    bool lost = false;
    bool removed = false;
    std::vector<std::function<void()>> waiters;
  };

  absl::StatusOr<const Entry*> Find(const std::string& device,
                                    const std::string& id) const;
  static Freed Free(Entry entry);

  const int max_buffers_;
  bool closed_ = false;
  uint64_t last_lease_ = 0;
  std::map<std::string, Entry> entries_;
  std::map<uint64_t, std::vector<std::string>> leases_;  // to buffer ids
};

}  // namespace kiln

#endif  // KILN_SERVER_BUFFER_REGISTRY_H_
