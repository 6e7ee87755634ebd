#include "jit/compile/conv_choice.h"

#include <cstdlib>
#include <limits>

#include "jit/compile/compute_capability.h"
#include "jit/compile/conv_tiles.h"

namespace kiln {
namespace {

constexpr int64_t kMaxOffset = std::numeric_limits<int32_t>::max() / 2;
// Warpgroups take eight channels of the input at once; with fewer the search
// goes on among warps.
constexpr int64_t kChannelsOfUnit = 8;
// Taps of a filter that depthwise_conv2d.cu is fast with.
constexpr int64_t kMostTaps = 121;

// Of a few channels of a few: tensor cores would mostly multiply zeros.
bool HasSmallGroups(const ConvProblem& problem) {
  return problem.groups > 1 && problem.group_inputs() < 4 &&
         (problem.group_inputs() == 1 || problem.group_outputs() < 8);
}

// One channel of one: tensor cores would have one number of a hundred to
// multiply.
bool IsDepthwise(const ConvProblem& problem) {
  return problem.group_inputs() == 1 && problem.group_outputs() == 1 &&
         !problem.transposed && !problem.wraps_rows &&
         problem.kernel[0] * problem.kernel[1] <= kMostTaps;
}

}  // namespace

std::optional<ConvGeometry> ChooseConvGeometry(const ConvProblem& problem,
                                               const ConvDemands& demands,
                                               const ConvOptions& options) {
  if (ComputeCapability(options.target) < 80) return std::nullopt;
  if (HasSmallGroups(problem)) return std::nullopt;
  if (IsDepthwise(problem)) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t reach = problem.output[2 + i] * problem.stride[i] +
                          problem.kernel[i] * problem.dilation[i] +
                          2 * std::abs(problem.padding[i]);
    if (reach > kMaxOffset) return std::nullopt;
  }
  ConvTiles tiles(problem, demands, options);
  if (!options.warps_only) {
    for (const ConvProblem& joined : JoinedProblems(problem)) {
      tiles.Join(joined);
      OfferGroupTiles(&tiles);
    }
    if (const auto ordinary = PhasesAsChannels(problem)) {
      tiles.Join(*ordinary);
      OfferGroupTiles(&tiles);
    }
    tiles.Join(problem);
  }
  // What tiles of warps know nothing of.
  if (demands.holds_images || problem.lies_apart()) return tiles.best();
  const bool fills_units = problem.group_inputs() >= kChannelsOfUnit;
  if (!tiles.best().has_value() || !fills_units) OfferWarpTiles(&tiles);
  return tiles.best();
}

}  // namespace kiln
