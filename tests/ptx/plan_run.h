#ifndef KILN_TESTS_PTX_PLAN_RUN_H_
#define KILN_TESTS_PTX_PLAN_RUN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/artifact/artifact.h"
#include "jit/compile/schedule.h"
#include "jit/compile/toolchain.h"
#include "tests/ptx/program.h"

namespace kiln::ptx {

struct PlanRunOptions {
  Room room = Room::kTight;
  size_t variant = 0;  // of MakeSchedules
  Tuning tuning = {};
  int64_t resident_blocks = 4;  // as in Launch
  uint64_t schedule_seed = 0;
  bool rounds_sums = false;  // as in Launch
  int off_grid = 0;  // elements by which tensors begin behind what is aligned
};

// The kernels of one plan for one target, as PTX that is ready to run.
struct PlanKernels {
  CanonicalPlan canonical;
  Schedule schedule;
  std::vector<Program> programs;
  std::vector<std::string> files;  // of the templates
  std::vector<Step> prepare;       // a step's module is a program
  std::vector<Step> launch;
  std::vector<std::vector<std::string>> symbols;  // of entries, by program
};

// Schedules a plan in text form for "sm_90a/132" and compiles it to PTX.
// Errors: those of parsing, NVRTC and Program::Load; OUT_OF_RANGE if there is
// no such variant.
absl::StatusOr<PlanKernels> CompileToPtx(std::string_view plan_text,
                                         std::string_view target,
                                         const Toolchain& toolchain,
                                         const PlanRunOptions& options = {});

// Executes zeroing, prepare and launch steps on the processor. `slots` are the
// canonical plan's inputs, then its outputs; both areas are filled with NaNs
// first. Inputs must not be written. Errors: those of Program::Run.
absl::Status RunOnProcessor(const PlanKernels& kernels,
                            std::vector<std::vector<char>>* slots,
                            const PlanRunOptions& options = {});

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_PLAN_RUN_H_
