#ifndef KILN_SERVER_CUDA_ARENA_H_
#define KILN_SERVER_CUDA_ARENA_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "jit/run/cuda_handles.h"
#include "jit/run/loaded_artifact.h"

namespace kiln {

// Device memory of one session beside its registered buffers: one workspace
// that its artifacts share, and for each artifact its prepared area (and a
// workspace of its own if the kernels keep state there). At most `limit_bytes`
// in all: areas of artifacts not used for longest go first. The context must
// be current and nothing of the session may run during a call.
class CudaArena {
 public:
  CudaArena(const DriverTable& driver, int64_t limit_bytes)
      : driver_(driver), limit_bytes_(limit_bytes) {}

  // The areas to launch `artifact`, known as `key`, with. Valid until the next
  // call. RESOURCE_EXHAUSTED: more than the limit, or than the device has.
  absl::StatusOr<LaunchAreas*> Reserve(const std::string& key,
                                       const LoadedArtifact& artifact);

  int64_t size_bytes() const;

 private:
  struct Areas {
    DeviceMemory workspace;  // empty: the shared one
    DeviceMemory prepared;
    LaunchAreas launch;
    uint64_t last_use = 0;
  };

  absl::StatusOr<DeviceMemory> Allocate(const std::string& keep,
                                        int64_t size_bytes);
  absl::Status Grow(const std::string& key, int64_t size_bytes,
                    DeviceMemory& memory);
  bool EvictOldest(const std::string& keep);

  const DriverTable& driver_;
  const int64_t limit_bytes_;
  DeviceMemory shared_workspace_;
  std::map<std::string, Areas> areas_;
  uint64_t uses_ = 0;
};

}  // namespace kiln

#endif  // KILN_SERVER_CUDA_ARENA_H_
