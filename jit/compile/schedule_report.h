#ifndef KILN_JIT_COMPILE_SCHEDULE_REPORT_H_
#define KILN_JIT_COMPILE_SCHEDULE_REPORT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jit/artifact/artifact.h"
#include "jit/compile/tuning.h"
#include "jit/plan/canonical.h"

namespace kiln {

// What the scheduler decided for a plan and a target, and what it decided
// against: for people, who may disagree. All types here are values. Times are
// the models', in microseconds, and empty where the clock or the memory of the
// target is not known.

// One way to compute a kernel.
struct ScheduleCandidate {
  std::string kind;    // "1 x 2 warpgroups, pixels", "whole grid"
  std::string detail;  // "tile 4 x 32, 64 channels of 64, ..."
  bool fits = true;
  bool chosen = false;
  std::optional<double> cycles;  // of a multiprocessor; convolutions only
  std::optional<double> microseconds;
  std::string reason;  // why it does not fit
};

struct KernelReport {
  std::string symbol;                 // of its first entry: "kiln_conv_reduce"
  std::vector<std::string> computes;  // ops of the canonical plan
  bool prepares = false;              // runs only when a parameter changed
  std::array<uint32_t, 3> grid = {1, 1, 1};  // of the first entry
  int threads = 0;                           // of a block
  int64_t dynamic_shared_bytes = 0;          // of a block
  int64_t read_bytes = 0;                    // each tensor once
  int64_t written_bytes = 0;
  std::optional<double> microseconds;
  // Fastest first, then those that do not fit. Empty where there is no choice
  // to make.
  std::vector<ScheduleCandidate> candidates;
  std::string why;  // the candidate was chosen, or there is none
};

// One of an artifact's variants.
struct VariantReport {
  Requirements requires_;
  int64_t workspace_bytes = 0;
  int64_t prepared_bytes = 0;
  std::vector<std::string> rewrites;  // applied, and tried in vain
  std::vector<KernelReport> kernels;  // in launch order
};

struct ScheduleReport {
  std::string device;       // "h100-sxm"; empty: no known device
  int clock_mhz = 0;        // 0: not known, so cycles have no time
  int memory_gb_per_s = 0;  // 0: not known
  std::vector<VariantReport> variants;
};

// The report of what MakeSchedules makes at first, before it is known whether
// every kernel fits in registers. No variants for the cpu target. Takes
// some tens of milliseconds for each convolution.
ScheduleReport ReportSchedules(const CanonicalPlan& plan, const Target& target,
                               const Tuning& tuning = {});

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_SCHEDULE_REPORT_H_
