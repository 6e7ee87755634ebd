#ifndef KILN_TESTS_JIT_COMPILE_FASTEST_SCHEDULE_H_
#define KILN_TESTS_JIT_COMPILE_FASTEST_SCHEDULE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "jit/compile/kernel_spec.h"
#include "jit/compile/schedule.h"
#include "jit/compile/specialize.h"
#include "jit/plan/plan_text.h"

namespace kiln {

inline const Target kH100 = {"sm_90a", 132};
inline const Target kA100 = {"sm_80", 108};
inline const Target kT4 = {"sm_75", 40};

// Of a plan that must be right.
inline LoweredPlan LoweredOf(const std::string& text) {
  return Lower(*Canonicalize(*ParsePlanText(text)));
}

// The first schedule of a plan that must be right.
inline Schedule Fastest(const std::string& text, const Target& target = kH100,
                        const Tuning& tuning = {}) {
  return MakeSchedules(*Canonicalize(*ParsePlanText(text)), target,
                       Room::kTight, tuning)
      .front();
}

// The first kernel that computes a convolution, of which there must be one.
inline const Kernel& ConvolutionOf(const Schedule& schedule) {
  return *std::find_if(
      schedule.kernels.begin(), schedule.kernels.end(),
      [](const Kernel& kernel) { return kernel.conv && kernel.computes(); });
}

// How the first direct convolution is divided (direct_tile.h); a test fails
// where there is none.
inline DirectTile DirectTileOf(const std::string& text,
                               const Target& target = kH100) {
  const Schedule schedule = Fastest(text, target);
  for (const Node& node : schedule.lowered.nodes) {
    if (node.direct) return *node.direct;
  }
  ADD_FAILURE() << "no tile of " << text;
  return {};
}

// Its part that is of one kernel; a test fails where it is another's.
template <typename Part>
Part PartOf(const std::string& text, const Target& target = kH100) {
  const DirectTile tile = DirectTileOf(text, target);
  const Part* const part = tile.As<Part>();
  EXPECT_NE(part, nullptr) << text;
  return part != nullptr ? *part : Part();
}

// The first rank of convolutions' candidates (Tuning::conv) for which `is` of a
// kernel of the first schedule is true; null if there is none among kMostRanks.
template <typename Is>
std::optional<Tuning> FindConvRank(const std::string& text,
                                   const Target& target, const Is& is) {
  constexpr int kMostRanks = 40;
  for (int rank = 0; rank < kMostRanks; ++rank) {
    const Tuning tuning = {.conv = rank};
    const Schedule schedule = Fastest(text, target, tuning);
    const auto& kernels = schedule.kernels;
    if (std::any_of(kernels.begin(), kernels.end(), is)) return tuning;
  }
  return std::nullopt;
}

// The source of the last kernel.
inline std::string LastUnitOf(const Schedule& schedule) {
  return WriteUnit(MakeKernelSpec(schedule, schedule.kernels.back()));
}

// Of the template of each kernel, in launch order.
inline std::vector<std::string> SourceFilesOf(const Schedule& schedule) {
  std::vector<std::string> files;
  for (const Kernel& kernel : schedule.kernels) {
    files.push_back(MakeKernelSpec(schedule, kernel).source_file);
  }
  return files;
}

inline std::vector<std::string> SourceFilesOf(const std::string& text,
                                              const Target& target = kH100) {
  return SourceFilesOf(Fastest(text, target));
}

}  // namespace kiln

#endif  // KILN_TESTS_JIT_COMPILE_FASTEST_SCHEDULE_H_
