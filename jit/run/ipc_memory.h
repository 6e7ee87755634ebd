#ifndef KILN_JIT_RUN_IPC_MEMORY_H_
#define KILN_JIT_RUN_IPC_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "jit/run/cuda_handles.h"

namespace kiln {

// How another process finds an address of ours.
struct ExportedMemory {
  std::string handle;        // 64 bytes of CUipcMemHandle; a secret
  int64_t offset_bytes = 0;  // of the address in the allocation
  int64_t size_bytes = 0;    // of the whole allocation
};

// Exports the cudaMalloc allocation that holds `address`, such as a block of
// PyTorch's caching allocator. FAILED_PRECONDITION or INVALID_ARGUMENT: memory
// that CUDA IPC cannot share (VMM, cudaMallocAsync, managed, host).
absl::StatusOr<ExportedMemory> ExportMemory(const DriverTable& driver,
                                            driver::DevicePtr address);

// Memory of another process, mapped into the current context.
struct ImportedMemory {
  IpcMapping mapping;  // its address is the base of the allocation
  int64_t size_bytes = 0;
};

// Opens a handle that ExportMemory made in another process. The driver refuses
// handles of the own process. INVALID_ARGUMENT: not 64 bytes, or no memory
// that this device can map.
absl::StatusOr<ImportedMemory> ImportMemory(const DriverTable& driver,
                                            const std::string& handle);

}  // namespace kiln

#endif  // KILN_JIT_RUN_IPC_MEMORY_H_
