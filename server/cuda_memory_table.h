#ifndef KILN_SERVER_CUDA_MEMORY_TABLE_H_
#define KILN_SERVER_CUDA_MEMORY_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "jit/run/cuda_handles.h"
#include "server/execution_backend.h"

namespace kiln {

// Client memory that is mapped into the executor, by id. The driver maps a
// handle once however often it is opened, so mappings are counted here and
// closed with their last id. The context must be current.
class CudaMemoryTable {
 public:
  struct Range {
    driver::DevicePtr base = 0;
    int64_t size_bytes = 0;
  };

  explicit CudaMemoryTable(const DriverTable& driver) : driver_(driver) {}

  // Ids are never used again. Errors: those of ImportMemory.
  absl::StatusOr<OpenedMemory> Open(const std::string& handle);
  // Ignores unknown ids.
  void Close(uint64_t id);
  // Nothing for unknown ids.
  std::optional<Range> Find(uint64_t id) const;
  size_t mapping_count() const { return mappings_.size(); }

 private:
  struct Mapping {
    IpcMapping memory;
    int64_t size_bytes = 0;
    int references = 0;
  };
  using Mappings = std::map<std::string, Mapping>;  // by handle

  const DriverTable& driver_;
  Mappings mappings_;
  std::map<uint64_t, Mappings::iterator> ids_;
  uint64_t next_id_ = 1;
};

}  // namespace kiln

#endif  // KILN_SERVER_CUDA_MEMORY_TABLE_H_
