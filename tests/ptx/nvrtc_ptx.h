#ifndef KILN_TESTS_PTX_NVRTC_PTX_H_
#define KILN_TESTS_PTX_NVRTC_PTX_H_

#include <string>

#include "absl/status/statusor.h"
#include "jit/compile/toolchain.h"

namespace kiln::ptx {

// The PTX of a generated unit for `arch` ("sm_90a"), by the NVRTC of
// `toolchain` and with the options and headers of jit/compile.
//
// Errors: FAILED_PRECONDITION without NVRTC; INTERNAL with NVRTC's log.
absl::StatusOr<std::string> PtxOf(const std::string& source,
                                  const std::string& arch,
                                  const Toolchain& toolchain);

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_NVRTC_PTX_H_
