#ifndef KILN_JIT_COMPILE_COMPILE_PLAN_H_
#define KILN_JIT_COMPILE_COMPILE_PLAN_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "jit/artifact/artifact.h"
#include "jit/compile/compile_request.h"

namespace kiln {

class NvrtcCompiler;

struct CompilePlanTiming {
  int64_t generate_us = 0;  // schedule and write the units
  int64_t nvrtc_us = 0;     // until NVRTC was done with all units
};

// Compiles a plan to an artifact: schedule, units, cubins, launch record.
// Deterministic: the same request gives the same bytes in any process. Needs
// no GPU. `nvrtc` may be null for the cpu target only. `timing` may be null.
//
// Errors: FAILED_PRECONDITION without NVRTC; UNIMPLEMENTED when NVRTC does not
// know the architecture; INTERNAL when it rejects our text, with log and
// source in the detail (that is a bug of Kiln's).
absl::StatusOr<Artifact> CompilePlan(const CompileRequest& request,
                                     NvrtcCompiler* nvrtc,
                                     CompilePlanTiming* timing = nullptr);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_COMPILE_PLAN_H_
