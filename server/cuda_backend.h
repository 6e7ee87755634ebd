#ifndef KILN_SERVER_CUDA_BACKEND_H_
#define KILN_SERVER_CUDA_BACKEND_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/execution_backend.h"

namespace kiln {

struct CudaBackendOptions {
  std::string driver_path = "libcuda.so.1";
  // Working memory of one session. The plain path's intermediate tensors live
  // there; those of the headline chains take up to 5 GB.
  int64_t arena_limit_bytes = int64_t{16} << 30;
  // Artifacts kept loaded; code is small, but each holds device memory.
  size_t loaded_limit = 256;
};

// Executes on device `ordinal` in its primary context, one job at a time on
// one stream. The context lives as long as the backend.
//
// Errors: FAILED_PRECONDITION without a driver or such a device.
absl::StatusOr<std::unique_ptr<ExecutionBackend>> CreateCudaBackend(
    int ordinal, const CudaBackendOptions& options = {});

}  // namespace kiln

#endif  // KILN_SERVER_CUDA_BACKEND_H_
