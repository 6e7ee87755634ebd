#include "jit/compile/conv_constants.h"

#include <algorithm>
#include <limits>
#include <variant>

#include "fmt/format.h"
#include "jit/compile/rounding.h"
#include "jit/compile/spec_text.h"

namespace kiln {
namespace {

Dims ToDims(const Dims4& dims) { return {dims[0], dims[1], dims[2], dims[3]}; }

}  // namespace

std::string BoolText(std::string_view name, bool value) {
  return fmt::format("static constexpr bool {} = {};", name, value);
}
std::string IntText(std::string_view name, int64_t value) {
  return fmt::format("static constexpr int {} = {};", name, value);
}
std::string IntsText(std::string_view first, int64_t value,
                     std::string_view second, int64_t other) {
  return fmt::format("static constexpr int {} = {}, {} = {};", first, value,
                     second, other);
}

std::vector<std::string> TileConstants(const ConvGeometry& g) {
  const ConvProblem& p = g.problem;
  std::vector<std::string> lines = ShapeText("Input", ToDims(p.input));
  const auto append = [&](const std::vector<std::string>& more) {
    lines.insert(lines.end(), more.begin(), more.end());
  };
  append(ShapeText("Output", ToDims(p.output)));
  append(ShapeText("Result", ToDims(p.result())));
  const bool has_groups = g.has_groups();
  append({fmt::format("static constexpr Index kGroups = {};", p.groups),
          IntText("kJoined", p.joined),
          IntText("kColumnsApart", p.columns_apart),
          PairText("Kernel", p.kernel),
          PairText("Stride", p.stride),
          PairText("Padding",
                   {g.padding(0), g.padding(1) + (has_groups ? g.lead() : 0)}),
          PairText("Dilation", p.dilation),
          BoolText("kWrapsRows", p.wraps_rows),
          PairText("Phases", {g.phases(0), g.phases(1)}),
          PairText("ChannelPhases", p.channel_phases),
          PairText("BeforeResult", p.before_result),
          IntText("kInterleave", g.interleave()),
          IntText("kPhasesAcross", g.column_phases),
          BoolText("kMergesRows", g.merges_rows),
          PairText("Extent", {g.extent(0), g.extent(1)}),
          IntsText("kTileH", g.tile_h, "kTileW", g.tile_w),
          IntsText("kStepH", g.step(0), "kStepW", g.step(1)),
          PairText("Before", g.windows.before),
          IntText("kRunPitch", has_groups ? g.run_pitch() : g.tile_w),
          IntsText("kWarpsM", has_groups ? 4 * g.groups_m : g.warps_m,
                   "kWarpsN", has_groups ? g.groups_n : g.warps_n),
          IntsText("kTilesM", g.tiles_m, "kTilesN", g.tiles_n),
          IntText("kWarpgroups", g.groups()),
          IntText("kBlockChannels", g.block_channels()),
          IntsText("kChunk", g.chunk, "kTilesPerBlock", g.tiles_per_block),
          IntsText("kTeams", g.teams, "kImageStep",
                   g.holds_images() ? g.teams : g.image_step),
          BoolText("kWalksColumns", g.walks_columns),
          IntText("kHeldLag", ConvGeometry::kHeldLag),
          IntsText("kImages", g.images, "kRowParts", g.row_parts),
          IntText("kSumBlocks", g.sum_blocks)});
  return lines;
}

std::vector<std::string> PatchConstants(const ConvGeometry& g) {
  return {PairText("Insert", g.problem.insert),
          BoolText("kSplitsInput", g.splits_input),
          BoolText("kSplitsWeight", g.splits_weight),
          BoolText("kCopiesInput", g.problem.input_type == DataType::kF32),
          BoolText("kCopiesFour", g.copies_four)};
}

std::vector<std::string> StageConstants(const ConvGeometry& g) {
  const bool scales = !g.problem.takes_as_stored();
  const TurningShare turning = g.turning();
  return {
      PairText("Taps", {g.taps(0), g.taps(1)}),
      IntsText("kOctetColumns", g.octet_columns, "kLead", g.lead()),
      PairText("PhaseStart", {g.phase_start(0), g.phase_start(1)}),
      BoolText("kHasUnevenPhases", g.has_uneven_phases()),
      BoolText("kPairsColumns", g.pairs_columns),
      BoolText("kTakesPairs", g.takes_pairs),
      BoolText("kTakesLines", g.takes_lines),
      BoolText("kLaysLines", g.lays_lines),
      IntText("kLinePitch", g.line_pitch()),
      BoolText("kTurnsLines", g.turns_lines),
      BoolText("kRoundsSums", g.rounds_sums),
      IntText("kResultParts", g.result_parts),
      IntText("kSplitPixels", g.problem.split_pixels),
      BoolText("kStoresSums", g.stores_sums),
      IntsText("kMatricesAcross", turning.across, "kOctetSets", turning.sets),
      IntsText("kEightsAtOnce", turning.at_once, "kPlacesAhead", turning.ahead),
      IntText("kPlaceUnits", g.place_units()),
      IntsText("kBatchesAhead", g.batches_ahead, "kCopyUnits", g.copy_units()),
      PairText("Planes", {g.planes(0), g.planes(1)}),
      IntText("kRowPitch", g.pitch),
      IntsText("kPlaneHeight", g.plane_height(), "kPositions", g.positions()),
      IntsText("kImagePositions", g.image_positions(), "kCarriedRows",
               g.carried_rows()),
      IntsText("kPartStep", g.part_step(), "kChannelRunPitch",
               g.channel_run_pitch()),
      IntsText("kGroupsM", g.groups_m, "kGroupsN", g.groups_n),
      BoolText("kChannelRows", g.channel_rows),
      BoolText("kKeepsWeights", g.keeps_weights),
      IntsText("kStages", g.stages, "kZeroUnits", g.zero_units()),
      IntText("kScaleUnits", g.scale_units()),
      IntsText("kInputParts", g.input_parts(), "kWeightParts",
               g.weight_parts()),
      IntText("kProductCalls", g.product_calls()),
      IntText("kChains", g.chains()),
      BoolText("kLoopsProducts", g.loops_products()),
      BoolText("kScales", scales),
      BoolText("kIsBFloat16", g.is_bfloat16()),
      IntText("kFactorsAt", (g.packed_bytes() / 4) - g.scale_count())};
}

std::vector<std::string> PoolConstants(const ConvGeometry& geometry,
                                       const Node& node) {
  const auto& pool = std::get<PoolAttributes>(node.attributes);
  return {BoolText("kPoolsMax", node.op == OpKind::kMaxPool2d),
          PairText("Pool", pool.kernel_size),
          PairText("PoolStride", pool.stride),
          IntText("kPooledFragments", geometry.PooledFragments()),
          BoolText("kPoolsPastEdges", geometry.windows.lay_out_tiles())};
}

std::string NeutralFunction(OpKind op) {
  std::string_view neutral = "0.0f";
  if (op == OpKind::kAmax || op == OpKind::kLogSumExp) {
    neutral = "-kiln::Infinity()";
  } else if (op == OpKind::kAmin) {
    neutral = "kiln::Infinity()";
  }
  return fmt::format("static __device__ float Neutral() {{ return {}; }}",
                     neutral);
}

bool NeedsWideIndex(const ConvGeometry& geometry, const Dims& domain) {
  const ConvProblem& p = geometry.problem;
  int64_t count = std::max(NumElements(domain),
                           p.input[0] * p.input[1] * p.input[2] * p.input[3]);
  // Tiles reach past the edges, and what producers' threads take at once past
  // the last row and image of a patch.
  constexpr int64_t kPositionsAtOnce = 8 * 256;
  count += 64 * p.output[3] * p.output[1] +
           kPositionsAtOnce * p.stride[0] * p.input[3];
  if (geometry.lays_lines) count += geometry.laid_lines().elements();
  count += geometry.laid_results().elements();
  if (geometry.images > 1) {
    count += CeilDiv(kPositionsAtOnce, geometry.image_positions()) *
             p.input[1] * p.input[2] * p.input[3];
  }
  return count > std::numeric_limits<int32_t>::max();
}

}  // namespace kiln
