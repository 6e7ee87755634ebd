#ifndef KILN_SERVER_EXECUTION_BACKEND_H_
#define KILN_SERVER_EXECUTION_BACKEND_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/artifact/artifact.h"

namespace kiln {

// What a device says of itself.
struct DeviceDescription {
  std::string device;  // "cpu", "cuda:0"
  std::string name;
  std::string uuid;  // "GPU-..."; empty for cpu
  Target target;
  int64_t memory_bytes = 0;
};

// Memory of a client: a descriptor (memfd), which the backend then owns, or a
// CUDA IPC handle.
struct MemoryDescriptor {
  int fd = -1;
};
struct MemoryIpcHandle {
  std::string bytes;  // 64, a secret: never logged
};
using MemorySource = std::variant<MemoryDescriptor, MemoryIpcHandle>;

struct OpenedMemory {
  uint64_t id = 0;         // for Close and bindings
  int64_t size_bytes = 0;  // as the kernel or the driver says, never the client
};

// `offset_bytes` into memory `id` is bound to the slot of the same index.
struct SlotBinding {
  uint64_t memory = 0;
  int64_t offset_bytes = 0;
};

struct ExecuteJob {
  std::string session;
  uint64_t parameter_version = 0;
  std::vector<SlotBinding> slots;
};

// What an executor process does with its device. One implementation per kind
// of device; lives in the executor process, called from its one thread.
class ExecutionBackend {
 public:
  virtual ~ExecutionBackend() = default;
  virtual DeviceDescription Describe() const = 0;
  virtual absl::StatusOr<OpenedMemory> Open(MemorySource source) = 0;
  virtual void Close(uint64_t memory) = 0;
  // Runs `artifact` and returns once its outputs are complete: microseconds on
  // the device. Checks every slot against its memory again. A status for which
  // `IsFatal` holds means that the process must end.
  virtual absl::StatusOr<int64_t> Execute(const Artifact& artifact,
                                          const ExecuteJob& job) = 0;
  // Frees what the session holds beside opened memory: arenas, prepared areas.
  virtual void EndSession(const std::string& session) = 0;
  // The device can no longer be trusted (a poisoned CUDA context).
  virtual bool poisoned() const = 0;
};

}  // namespace kiln

#endif  // KILN_SERVER_EXECUTION_BACKEND_H_
