// Whether a tile of warpgroups fits in registers, by what ptxas refused
// (docs/kernel-notes, A fifth survey).
#include <algorithm>

#include "jit/compile/conv_tiles.h"

namespace kiln {
namespace {

// Of a thread: where few channels are behind each pixel, or chunks have sums of
// their own, whose registers are free behind the last chunk; and elsewhere.
constexpr int64_t kFewRegistersBesideSums = 48;
constexpr int64_t kRegistersBesideSums = 64;
constexpr int64_t kFewFragments = 8;
// Where channels are rows: with planes, and with runs alone. (40 for these
// would admit 18 fragments beside 112 registers, which ptxas refused each
// time.)
constexpr int64_t kRegistersBesidePlanes = 56;
constexpr int64_t kRegistersBesideRuns = 48;
constexpr int64_t kRegistersBesideRounded = 48;
// More, of results with scales, unless chunks' sums have left theirs.
constexpr int64_t kRegistersBesideScales = 8;
constexpr int64_t kRegistersBesideStatistics = 40;  // where pixels are
// Of each fragment of rows behind the first, where a window of pixels is
// reduced, and where all channels of a pixel are; and of many of these.
constexpr int64_t kRegistersOfWindows = 16;
constexpr int64_t kRegistersOfReduction = 8;
constexpr int64_t kManyFragments = 12;
constexpr int64_t kRegistersOfManyChannels = 24;
// By what ptxas refused, where neighbours of a phase lie apart in the output:
// without statistics, and beside them.
constexpr int64_t kRegistersOfPhases = 16;
constexpr int64_t kRegistersOfPhasesBesideStatistics = 32;
// Producers that turn lines leave more than other ones; with all of these,
// reductions were admitted that ptxas refused.
constexpr int64_t kMostBesideReductions = 192;
// Each sum beyond these takes another register before a softmax, by what ptxas
// refused.
constexpr int64_t kSumsBesidePowers = 32;
// Beside the sums of one instruction. It matters where 128 are launched: 16
// instead would admit tiles of 27 and 28 fragments, each of which ptxas refused
// of the ten plans and grades of bench/generality.py and the chains that can
// have one. Where fewer are launched, GroupSumsFit refuses those tiles anyway.
constexpr int64_t kRegistersOfProduct = 24;
// The scales of weights, where results have scales of their own.
constexpr int64_t kRegistersOfScales = 2;
// Of a thread, where pixels are rows: what one producer beside two warpgroups
// leaves room for.
constexpr int64_t kMaxSums = 128;

int64_t SumsOf(const ConvGeometry& g) {
  return int64_t{g.tiles_m} * g.tiles_n * 4;
}

// Where pixels are rows. Two blocks of a multiprocessor and operands that are
// multiplied as they are stored would fit, too, and are refused for time: three
// plans of each were slower, by 8 to 25 % (on an H100). Strides take more
// registers, for addresses.
bool MayHaveFew(const ConvDemands& demands, const ConvGeometry& g) {
  if (g.resident_blocks > 1 || g.problem.has_stride()) return false;
  if (g.sums_chunks()) return true;
  const bool reduces = demands.all_channels_in_a_block || demands.windows.any();
  return g.tiles_n <= kFewFragments && !reduces && !g.problem.takes_as_stored();
}

int64_t BesideReductions(const ConvDemands& demands, const ConvGeometry& g) {
  const int64_t behind_first = g.tiles_m - 1;
  int64_t beside =
      demands.windows.any() ? kRegistersOfWindows * behind_first : 0;
  if (!demands.all_channels_in_a_block) return beside;
  beside += kRegistersOfReduction * behind_first;
  if (!g.sums_chunks() && g.tiles_n > kManyFragments) {
    beside += kRegistersOfManyChannels;
  }
  if (demands.has_softmax) {
    beside += std::max(int64_t{0}, SumsOf(g) - kSumsBesidePowers);
  }
  return beside;
}

int64_t BesidePixelRows(const ConvTiles& tiles, const ConvGeometry& g) {
  const ConvDemands& demands = tiles.demands();
  // One tile's statistics begin where its products end.
  const bool has_free = g.images > 1 && g.sums_chunks();
  const int64_t statistics = kRegistersBesideStatistics -
                             (has_free ? SumsOf(g) : 0) +
                             tiles.StatisticsRegisters(g);
  const int64_t beside = std::max(
      MayHaveFew(demands, g) ? kFewRegistersBesideSums : kRegistersBesideSums,
      statistics);
  const int64_t of_phases = demands.has_statistics
                                ? kRegistersOfPhasesBesideStatistics
                                : kRegistersOfPhases;
  return beside + (g.phases(1) > 1 ? of_phases : 0) +
         BesideReductions(demands, g);
}

int64_t BesideChannelRows(const ConvDemands& demands, const ConvGeometry& g) {
  if (g.rounds_sums) {
    const bool has_scales = g.result_parts > 0 && !g.sums_chunks();
    return kRegistersBesideRounded + (has_scales ? kRegistersBesideScales : 0);
  }
  const bool has_planes = demands.needs_planes() && !g.stores_sums;
  const int64_t behind =
      g.BesideRegisters(demands) +
      (has_planes ? kRegistersBesidePlanes : kRegistersBesideRuns);
  const bool lays_planes_alone = has_planes && !demands.has_statistics &&
                                 !demands.windows.any() && g.phases(1) == 1;
  if (!g.sums_chunks() || !lays_planes_alone) return behind;
  // Planes are laid when the last chunk's sums have left their registers.
  return std::max(kRegistersBesideRuns, behind - SumsOf(g));
}

}  // namespace

bool GroupSumsFit(const ConvTiles& tiles, const ConvGeometry& g) {
  // One instruction must fit before registers have moved.
  const int64_t scales = g.result_parts > 0 ? kRegistersOfScales : 0;
  if (g.tiles_n * 4 + kRegistersOfProduct + scales > g.launch_registers()) {
    return false;
  }
  if (!g.channel_rows && SumsOf(g) > kMaxSums) return false;
  const int64_t beside = g.channel_rows ? BesideChannelRows(tiles.demands(), g)
                                        : BesidePixelRows(tiles, g);
  const int64_t sums = SumsOf(g) * (g.sums_chunks() ? 2 : 1);
  int64_t most = g.consumer_registers();
  if (g.turns_lines && tiles.demands().all_channels_in_a_block) {
    most = std::min(most, kMostBesideReductions);
  }
  return sums + beside + tiles.spare_registers() <= most;
}

}  // namespace kiln
