#include <algorithm>

#include "jit/compile/conv_tiles.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

constexpr int64_t kRegisters = 65536;  // of a multiprocessor
constexpr int64_t kMaxRegisters = 255;
// With fewer threads there are too few warps to hide latencies.
constexpr int kFewestResidentThreads = 256;
// Of a thread, for all but sums, statistics and weights.
constexpr int64_t kRegistersBesideSums = 48;
constexpr int64_t kMaxSums = 96;
// With those of groups of channels beside them, ptxas has refused more.
constexpr int64_t kMaxSumsBesideStatistics = 80;
// However many registers are to be left over: less would not hold a group of
// channels, or all that are reduced.
constexpr int64_t kFewestSums = 32;

class WarpTiles {
 public:
  explicit WarpTiles(ConvTiles* tiles)
      : tiles_(*tiles), demands_(tiles->demands()) {
    const ConvProblem& p = tiles_.base().problem;
    can_copy_four_ = p.input_type == DataType::kF32 && p.input[3] % 4 == 0 &&
                     p.insert == Pair{1, 1};
  }

  void Run() {
    if (!Suits()) return;
    for (const int warps_n : {1, 2, 4, 8}) {
      for (const int warps_m : {8, 4, 2, 1}) {
        if (warps_m * warps_n > 8) continue;
        ConvGeometry g = tiles_.base();
        g.warps_m = warps_m;
        g.warps_n = warps_n;
        TryChannels(g);
      }
    }
  }

 private:
  // Lines are warpgroups'.
  bool Suits() const {
    return !tiles_.base().problem.input_is_laid && !demands_.leaves_lines;
  }

  void TryChannels(ConvGeometry g) {
    const int64_t fragments = CeilDiv(g.problem.group_outputs(), 8);
    for (const int tiles_n : {32, 16, 8, 7, 6, 5, 4, 3, 2, 1}) {
      const int64_t together = int64_t{g.warps_n} * tiles_n;
      if (together > RoundUp(fragments, g.warps_n)) continue;
      g.tiles_n = tiles_n;
      if (demands_.all_channels_in_a_block && together < fragments) continue;
      if (!KeepsGroupsWhole(g)) continue;
      TryRows(g);
    }
  }

  // Whether no block has a part of a normalised group and a part of another:
  // some number of fragments will do.
  bool KeepsGroupsWhole(const ConvGeometry& g) const {
    const int64_t group = demands_.group_channels;
    return group == 0 || g.block_channels() % group == 0 ||
           group % g.block_channels() == 0;
  }

  void TryRows(ConvGeometry g) {
    for (const int tiles_m : {1, 2, 3, 4}) {
      g.tiles_m = tiles_m;
      for (const int resident : {1, 2}) {
        g.resident_blocks = resident;
        TryTiles(g);
      }
    }
  }

  // Whether a thread has the registers for its sums. A reduction over channels
  // needs its values all at once.
  bool SumsFit(const ConvGeometry& g) const {
    const int64_t parts = demands_.all_channels_in_a_block ? 2 : 1;
    if (g.resident_blocks > 1 && g.threads() < kFewestResidentThreads) {
      return false;
    }
    const int64_t registers =
        std::min(kRegisters / (g.threads() * g.resident_blocks), kMaxRegisters);
    const int64_t sums = int64_t{g.tiles_m} * g.tiles_n * 4 * parts;
    const int64_t weights = g.tiles_n * (g.splits_weight ? 4 : 2);
    const int64_t rest = kRegistersBesideSums + weights +
                         tiles_.StatisticsRegisters(g) +
                         tiles_.spare_registers();
    const int64_t most =
        demands_.group_channels > 0 ? kMaxSumsBesideStatistics : kMaxSums;
    const int64_t left =
        std::max(most - tiles_.spare_registers(), kFewestSums * parts);
    return sums <= left && sums + rest <= registers;
  }

  // Tiles of warps: all rows are pixels.
  void TryTiles(ConvGeometry g) {
    for (const int width : {8, 16, 32, 64}) {
      if (g.rows() % width != 0) continue;
      g.tile_w = width;
      g.tile_h = static_cast<int>(g.rows() / width);
      TryCopies(g);
    }
  }

  bool HasWholeWindows(const ConvGeometry& g) const {
    const ConvWindows& windows = demands_.windows;
    if (windows.lay_out_tiles()) {
      return g.tile_h >= windows.size[0] && g.tile_w >= windows.size[1];
    }
    return g.tile_h % windows.size[0] == 0 &&
           (g.tile_w % windows.size[1] == 0 || g.tiles_across() == 1);
  }

  void TryCopies(ConvGeometry g) {
    if (!HasWholeWindows(g)) return;
    g.copies_four =
        can_copy_four_ &&
        (g.tiles_across() == 1 || g.step(1) * g.problem.stride[1] % 4 == 0);
    TryChunks(g);
  }

  void TryChunks(ConvGeometry g) {
    const int64_t inputs = g.problem.group_inputs();
    for (const int chunk : {1, 2, 3, 4, 8, 16, 32}) {
      if (chunk > inputs && chunk >= 2 * inputs && chunk != 4) continue;
      if (inputs >= 8 && chunk < 4) continue;
      g.chunk = chunk;
      if (SumsFit(g)) {
        tiles_.Offer(g);
      } else {
        tiles_.Refuse(g);
      }
    }
  }

  ConvTiles& tiles_;
  const ConvDemands& demands_;
  bool can_copy_four_ = false;
};

}  // namespace

void OfferWarpTiles(ConvTiles* tiles) { WarpTiles(tiles).Run(); }

}  // namespace kiln
