#ifndef KILN_JIT_RUN_CUDA_ERRORS_H_
#define KILN_JIT_RUN_CUDA_ERRORS_H_

#include <string_view>

#include "absl/status/status.h"
#include "jit/run/driver_api.h"

namespace kiln {

// The one place where a CUresult becomes a status. OK for kSuccess; else the
// message names `call` and the code, as in
// "cuLaunchKernelEx fails (CUDA_ERROR_INVALID_VALUE, 1)."
//
//   RESOURCE_EXHAUSTED   out of memory
//   FAILED_PRECONDITION  no device or driver, a cubin or a launch that this
//                        device cannot take
//   ABORTED              errors that poison the context; IsFatal holds
//   INTERNAL             everything else
absl::Status CudaStatus(driver::Result result, std::string_view call);

// The context that gave this error can no longer be used and its process must
// end: sticky errors of the CUDA Driver API reference (illegal address, failed
// launch, ...), uncorrectable memory errors, a lost MPS server.
bool IsFatal(const absl::Status& status);

// "CUDA_ERROR_ILLEGAL_ADDRESS"; "CUDA_ERROR" for codes without a name here.
std::string_view CudaErrorName(driver::Result result);

}  // namespace kiln

#endif  // KILN_JIT_RUN_CUDA_ERRORS_H_
