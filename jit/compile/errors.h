#ifndef KILN_JIT_COMPILE_ERRORS_H_
#define KILN_JIT_COMPILE_ERRORS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace kiln {

// FAILED_PRECONDITION: a CUDA target, but no NVRTC is loaded.
absl::Status NoNvrtc(std::string_view arch);

// INVALID_ARGUMENT: no schedule of this name exists.
absl::Status UnknownVariant(std::string_view variant);

// An architecture that was asked for, and those that NVRTC knows: 75 for sm_75.
struct AskedArchitecture {
  std::string_view name;  // "sm_90a"
  std::vector<int> known;
};

// UNIMPLEMENTED: NVRTC does not know the architecture. Names those it knows.
absl::Status UnknownArchitecture(const AskedArchitecture& arch);

// INTERNAL: a compiled kernel needs local memory, which means spills.
absl::Status Spills(std::string_view symbol, std::string_view source,
                    std::string_view log);

// INTERNAL: the log says nothing about a kernel that the unit defines.
absl::Status NoKernelInfo(std::string_view symbol, std::string_view source,
                          std::string_view log);

// NOT_FOUND: no NVRTC in any of the folders.
absl::Status NvrtcNotFound(const std::vector<std::string>& folders);

// INVALID_ARGUMENT: the path that was asked for holds no usable NVRTC.
absl::Status NvrtcNotAt(std::string_view path, std::string_view problem);

// FAILED_PRECONDITION: dlopen or dlsym failed.
absl::Status NvrtcNotLoaded(std::string_view path, std::string_view problem);

// The one place where an nvrtcResult becomes a status. `result` is not
// NVRTC_SUCCESS; `name` is its name.
//   NVRTC_ERROR_OUT_OF_MEMORY   RESOURCE_EXHAUSTED
//   NVRTC_ERROR_INVALID_OPTION  UNIMPLEMENTED: of our fixed options only the
//                               architecture can be unknown
//   NVRTC_ERROR_CANCELLED       DEADLINE_EXCEEDED
//   any other                   INTERNAL, with log and source in the detail
absl::Status NvrtcError(int result, std::string_view name,
                        const AskedArchitecture& arch, std::string_view source,
                        std::string_view log);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_ERRORS_H_
