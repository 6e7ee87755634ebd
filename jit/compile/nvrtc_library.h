#ifndef KILN_JIT_COMPILE_NVRTC_LIBRARY_H_
#define KILN_JIT_COMPILE_NVRTC_LIBRARY_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "jit/compile/toolchain.h"

namespace kiln {

// The functions of NVRTC that Kiln calls, found by name in an opened library.
// Declared here and not by nvrtc.h, so that building needs no CUDA toolkit.
// The library is never closed: NVRTC leaves threads and handlers behind.
struct NvrtcLibrary {
  using Program = void*;
  using FlowCallback = int (*)(void* payload, void* reserved);

  int (*version)(int* major, int* minor) = nullptr;
  const char* (*get_error_string)(int result) = nullptr;
  int (*create_program)(Program* program, const char* source, const char* name,
                        int num_headers, const char* const* headers,
                        const char* const* include_names) = nullptr;
  int (*destroy_program)(Program* program) = nullptr;
  int (*compile_program)(Program program, int num_options,
                         const char* const* options) = nullptr;
  int (*get_cubin_size)(Program program, size_t* size) = nullptr;
  int (*get_cubin)(Program program, char* cubin) = nullptr;
  int (*get_program_log_size)(Program program, size_t* size) = nullptr;
  int (*get_program_log)(Program program, char* log) = nullptr;
  int (*get_num_supported_archs)(int* count) = nullptr;
  int (*get_supported_archs)(int* archs) = nullptr;  // 75, 80: ascending
  // Since CUDA 12.9; null before.
  int (*set_flow_callback)(Program program, FlowCallback callback,
                           void* payload) = nullptr;
};

// Errors: FAILED_PRECONDITION if one of the libraries of `toolchain` or one of
// their functions is missing.
absl::StatusOr<NvrtcLibrary> LoadNvrtcLibrary(const Toolchain& toolchain);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_NVRTC_LIBRARY_H_
