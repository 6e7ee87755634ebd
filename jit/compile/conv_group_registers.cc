// Whether a tile of warpgroups fits in registers.
#include <algorithm>

#include "jit/compile/conv_tiles.h"

namespace kiln {
namespace {

// Of a thread: where chunks have sums of their own, whose registers are free
// behind the last chunk, in blocks that have a multiprocessor to themselves;
// and elsewhere.
constexpr int64_t kRegistersBesideChunks = 48;
constexpr int64_t kRegistersBesideSums = 64;
// Where channels are rows: with planes, and with runs alone. (40 for these
// would admit 18 fragments beside 112 registers, which ptxas refused each
// time.)
constexpr int64_t kRegistersBesidePlanes = 56;
constexpr int64_t kRegistersBesideRuns = 48;
constexpr int64_t kRegistersBesideStatistics = 40;  // where pixels are
// Of each fragment of rows behind the first, where a window of pixels is
// reduced, and where all channels of a pixel are; and of many channels.
constexpr int64_t kRegistersOfWindows = 16;
constexpr int64_t kRegistersOfReduction = 8;
constexpr int64_t kManyFragments = 12;
constexpr int64_t kRegistersOfManyChannels = 24;
// By what ptxas refused, where neighbours of a phase lie apart in the output:
// without statistics, and beside them.
constexpr int64_t kRegistersOfPhases = 16;
constexpr int64_t kRegistersOfPhasesBesideStatistics = 32;
// Each sum beyond these takes another register before a softmax, by what ptxas
// refused.
constexpr int64_t kSumsBesidePowers = 32;
// Beside the sums of one instruction. It matters where 128 are launched: 16
// instead would admit tiles of 27 and 28 fragments, each of which ptxas refused
// of the ten plans and grades of bench/generality.py and the chains that can
// have one. Where fewer are launched, GroupSumsFit refuses those tiles anyway.
constexpr int64_t kRegistersOfProduct = 24;
constexpr int64_t kMaxSums = 128;  // of a thread

}  // namespace

bool GroupSumsFit(const ConvTiles& tiles, const ConvGeometry& g) {
  const ConvDemands& demands = tiles.demands();
  const int64_t sums = int64_t{g.tiles_m} * g.tiles_n * 4;
  // One instruction must fit before registers have moved.
  if (g.tiles_n * 4 + kRegistersOfProduct > g.launch_registers()) {
    return false;
  }
  const int64_t parts = g.sums_chunks() ? 2 : 1;
  int64_t beside =
      demands.needs_planes() ? kRegistersBesidePlanes : kRegistersBesideRuns;
  if (!g.channel_rows) {
    const bool is_scaled = !g.problem.takes_as_stored();
    const bool are_few = is_scaled && g.tiles_n <= 8 && !demands.all_channels_in_a_block && !demands.windows.any();
    const bool are_free =
        (parts > 1 || are_few) && g.resident_blocks == 1 && g.problem.stride == Pair{1, 1};
    // One tile's statistics begin where its products end.
    const int64_t products = g.images > 1 ? sums * (parts - 1) : 0;
    beside = std::max(
        are_free ? kRegistersBesideChunks : kRegistersBesideSums,
        kRegistersBesideStatistics - products + tiles.StatisticsRegisters(g));
    if (g.phases(1) > 1) {
      beside += demands.has_statistics ? kRegistersOfPhasesBesideStatistics
                                       : kRegistersOfPhases;
    }
    if (demands.windows.any()) beside += kRegistersOfWindows * (g.tiles_m - 1);
    if (demands.all_channels_in_a_block) {
      beside += kRegistersOfReduction * (g.tiles_m - 1);
      if (parts == 1 && g.tiles_n > kManyFragments)
        beside += kRegistersOfManyChannels;
      if (demands.has_softmax) {
        beside += std::max(int64_t{0}, sums - kSumsBesidePowers);
      }
    }
    if (sums > kMaxSums) return false;
  } else {
    beside += g.BesideRegisters(demands);
  }
  return sums * parts + beside + tiles.spare_registers() <=
         g.consumer_registers();
}

}  // namespace kiln
