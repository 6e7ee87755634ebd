#include "jit/compile/stem_tile.h"

#include <algorithm>
#include <set>
#include <variant>

#include "jit/compile/compute_capability.h"
#include "jit/compile/conv_fusion.h"
#include "jit/compile/direct_cost.h"
#include "jit/compile/reshape_images.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

constexpr int kNeededCapability = 80;
constexpr int64_t kOfQuad = 4;         // numbers
constexpr int64_t kMostResults = 128;  // of a pixel
// Where others are as fast (docs/kernel-notes/other-kernels.md): filters with
// more taps, rows of results that are no whole accesses, and of f32, of which
// others do as much in a product, more weights for a channel of the input, few
// results of a multiprocessor, and tiles that they do not fill. Where it is
// split, there must be hardly any products.
constexpr int64_t kMostTaps = 36;
constexpr int64_t kMostWeightsOfF32 = 1600;
constexpr int64_t kFewestBytesOfF32 = 192 * 1024;
constexpr double kLeastFilledOfF32 = 0.9;
constexpr int64_t kMostSplitSteps = 2;
constexpr int64_t kFewestSplitBytes = 512 * 1024;

constexpr int64_t kMostAtOnce = 4;  // columns of an access
constexpr int64_t kWarp = 32;
constexpr int64_t kMostWarps = 8;  // of a block
constexpr int64_t kChannelsOfTile = 16;
constexpr int64_t kColumnsOfTile = 8;
constexpr int64_t kOfLane = 2;  // of these, next to each other
constexpr int64_t kAccessBytes = 16;
// Of a warp: sums of 16 x 8, rows, and what it has on its way, of a thread.
constexpr int64_t kMostTilesM = 4;
constexpr int64_t kMostSums = 16;
constexpr int64_t kMostSumsOfManyOps = 8;  // which take long to compile
constexpr int64_t kManyOps = 4;
constexpr int64_t kMostRows = 8;
constexpr int64_t kMostBytesAhead = 96;
// Blocks of a multiprocessor, fewer where warps have many sums.
constexpr int kBlocksAtOnce = 3;
constexpr int kFewBlocksAtOnce = 2;
constexpr int kManySums = 10;
constexpr int kManySplitSums = 4;
constexpr int64_t kMostSharedBytes = 216 * 1024;  // of all of them
constexpr int64_t kMostTiles = int64_t{1} << 30;

// What a warp does: instructions, and cycles of shared memory and of tensor
// cores, of which what does not hide behind the others counts. Fitted to ten
// tiles each of 15 convolutions; only their order matters.
constexpr double kInstructionsPerCycle = 2.5;
constexpr double kPartOfShared = 0.4;
constexpr double kPartOfProducts = 0.2;
constexpr double kCyclesOfProduct = 2;
constexpr double kCyclesOfTile = 480;
constexpr double kCyclesOfRow = 380;  // which other warps hide
constexpr double kOfChannel = 18;
constexpr double kOfResult = 28;
constexpr double kOfStore = 34;
constexpr double kCyclesOfStore = 22;
constexpr double kOfQuadBrought = 16;
constexpr double kOfAccess = 32;

struct StemWork {
  Dims4 input;
  Dims4 output;
  Pair kernel;
  ConvAttributes conv;
  int64_t element_bytes;
  int64_t products;   // of parts of operands
  int64_t most_sums;  // of a warp, of 16 x 8

  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t results() const {
    return output[0] * output[1] * output[2] * output[3];
  }
  bool splits() const { return products > 1; }
  int64_t parts() const { return splits() ? 2 : 1; }
  int64_t rows_of_quad() const {
    int64_t rows = std::min(kOfQuad / input[1], kernel[0]);
    while (kernel[0] % rows != 0) --rows;
    return rows;
  }
  // Of the input's columns, by one access.
  int64_t columns_at_once() const {
    int64_t columns = kMostAtOnce;
    while (input[3] % columns != 0) columns /= 2;
    return columns;
  }
  int64_t columns_of_step() const { return element_bytes == 4 ? 2 : 4; }
  int64_t column_steps() const { return CeilDiv(kernel[1], columns_of_step()); }
  int64_t row_steps() const { return kernel[0] / rows_of_quad(); }
  int64_t steps() const { return row_steps() * column_steps(); }
};

// A way of dividing the result, and what follows from it as in StemTile of
// stem_quads.cuh.
class Tiling {
 public:
  Tiling(const StemWork& work, const StemTile& tile)
      : work_(work), tile_(tile) {}

  int64_t warps() const {
    return int64_t{tile_.warps_c} * tile_.warps_h * tile_.warps_w;
  }
  int64_t count() const {
    return work_.output[0] * CeilDiv(work_.output[2], height()) *
           CeilDiv(work_.output[3], width());
  }
  int64_t vector() const {
    int64_t vector = kAccessBytes / work_.element_bytes;
    while (kOfLane * tile_.tiles_n % vector != 0 ||
           work_.output[3] % vector != 0) {
      vector /= 2;
    }
    return vector;
  }
  int64_t shared_bytes() const {
    const int64_t fragments =
        work_.steps() * tile_.warps_c * tile_.tiles_m * kWarp * kAccessBytes;
    const int64_t quads = patch_rows() * run() * work_.conv.stride[1];
    return work_.parts() *
           (fragments +
            RoundUp(quads * kOfQuad * work_.element_bytes, kAccessBytes));
  }
  int blocks_at_once() const {
    const int many = tile_.splits ? kManySplitSums : kManySums;
    return tile_.tiles_m * tile_.tiles_n > many ? kFewBlocksAtOnce
                                                : kBlocksAtOnce;
  }
  // With so many bytes for the blocks of a multiprocessor.
  bool IsPossible(int64_t most_shared) const {
    return shared_bytes() * blocks_at_once() <= most_shared &&
           count() <= kMostTiles && bytes_ahead() <= kMostBytesAhead;
  }
  // Half of a warp's lanes read at once, of neighbouring columns and pixels, a
  // vector further on the same, and with a stride of 2 as much of the next run:
  // that is so far away that all have banks of their own.
  int64_t run() const {
    const int64_t stride = work_.conv.stride[1];
    const int64_t least = CeilDiv(patch_columns(), stride);
    if (stride == 1) return RoundUp(least, 2);
    const int64_t banks = work_.element_bytes == 4 ? 8 : 16;  // in quads
    const int64_t apart = vector() * 2 == banks ? banks / 4 : banks / 2;
    return RoundUp(std::max(least - apart, int64_t{0}), banks) + apart;
  }
  // Which part of the tiles' results there is.
  double Filled() const {
    return static_cast<double>(work_.results()) /
           static_cast<double>(count() * height() * width() * kChannelsOfTile *
                               tile_.warps_c * tile_.tiles_m);
  }
  // Of the blocks of a multiprocessor, and all tiles that each has.
  double Cycles(int64_t blocks) const {
    const auto warps_of_block = static_cast<double>(warps());
    const double of_row =
        CyclesOfRow() +
        kCyclesOfRow / warps_of_block / static_cast<double>(blocks_at_once());
    const double of_tile =
        kCyclesOfTile +
        warps_of_block * (of_row * tile_.rows + CyclesOfPatch());
    return of_tile *
           static_cast<double>(blocks_at_once() * CeilDiv(count(), blocks));
  }

 private:
  int64_t height() const { return int64_t{tile_.rows} * tile_.warps_h; }
  int64_t width() const {
    return kColumnsOfTile * tile_.tiles_n * tile_.warps_w;
  }
  int64_t patch_rows() const {
    return (height() - 1) * work_.conv.stride[0] +
           (work_.row_steps() - 1) * work_.rows_of_quad() *
               work_.conv.dilation[0] +
           1;
  }
  int64_t patch_columns() const {
    const int64_t at_once = work_.columns_at_once();
    const int64_t shift = (at_once - work_.conv.padding[1] % at_once) % at_once;
    const int64_t taps = work_.column_steps() * work_.columns_of_step();
    return RoundUp(shift + (width() - 1) * work_.conv.stride[1] +
                       (taps - 1) * work_.conv.dilation[1] + 1,
                   at_once);
  }
  // Of a thread.
  int64_t bytes_ahead() const {
    const int64_t accesses =
        CeilDiv(patch_rows() * patch_columns() / work_.columns_at_once(),
                warps() * kWarp);
    return accesses * work_.columns_at_once() * work_.input[1] *
           work_.rows_of_quad() * work_.element_bytes;
  }

  // Of a warp: a row's products and what follows them.
  double CyclesOfRow() const {
    const double m = tile_.tiles_m;
    const double n = tile_.tiles_n;
    const double products =
        m * n * static_cast<double>(work_.steps() * work_.products);
    // Sums of one step's products are added by four instructions.
    const double added = work_.splits() ? 4.0 / 3 : 0;
    const auto fragments = static_cast<double>(work_.steps() * work_.parts());
    const double results = m * n * 4;
    const double stores = results / static_cast<double>(vector());
    return Together(products * (1 + added) + fragments * (m + 3 * n) +
                        results * kOfResult + stores * kOfStore +
                        2 * m * kOfChannel,
                    fragments * (m * 4 + n * 2) + stores * kCyclesOfStore,
                    products * kCyclesOfProduct);
  }
  // The warp's part of bringing quads.
  double CyclesOfPatch() const {
    const auto quads = static_cast<double>(patch_rows() * patch_columns()) /
                       static_cast<double>(warps() * kWarp);
    const auto accesses =
        static_cast<double>(work_.input[1] * work_.rows_of_quad()) /
        static_cast<double>(work_.columns_at_once());
    return Together(quads * (kOfQuadBrought + accesses * kOfAccess),
                    quads * 4 * static_cast<double>(work_.parts()), 0);
  }
  static double Together(double instructions, double shared, double products) {
    return instructions / kInstructionsPerCycle + shared * kPartOfShared +
           products * kPartOfProducts;
  }

  const StemWork& work_;
  const StemTile tile_;
};

// Calls visit(tile) for each way of dividing the result.
template <typename Visit>
void ForEachTile(const StemWork& work, const Visit& visit) {
  StemTile tile;
  tile.rows_of_quad = static_cast<int>(work.rows_of_quad());
  tile.columns_at_once = static_cast<int>(work.columns_at_once());
  tile.splits = work.splits();
  const int64_t all = CeilDiv(work.output[1], kChannelsOfTile);
  for (int64_t m = 1; m <= std::min(all, kMostTilesM); ++m) {
    tile.tiles_m = static_cast<int>(m);
    tile.warps_c = static_cast<int>(CeilDiv(all, m));
    const int64_t others = kMostWarps / tile.warps_c;
    for (int64_t down = 1; down <= others; ++down) {
      if (others % down != 0) continue;
      tile.warps_h = static_cast<int>(down);
      tile.warps_w = static_cast<int>(others / down);
      for (int64_t n = 1; n * m <= work.most_sums; ++n) {
        tile.tiles_n = static_cast<int>(n);
        for (int64_t rows = 1; rows <= kMostRows; rows *= 2) {
          tile.rows = static_cast<int>(rows);
          tile.run = static_cast<int>(Tiling(work, tile).run());
          visit(tile);
        }
      }
    }
  }
}

std::optional<DirectTile> TileOf(const StemWork& work, const Target& target) {
  const int64_t sm_count = MultiprocessorsOf(target);
  const int64_t most_shared =
      std::min(kMostSharedBytes, MaxSharedBytes(target));
  std::optional<DirectTile> best;
  double fewest = 0;
  ForEachTile(work, [&](const StemTile& part) {
    const Tiling tiling(work, part);
    if (!tiling.IsPossible(most_shared)) return;
    DirectTile tile;
    tile.threads = static_cast<int>(tiling.warps() * kWarp);
    tile.vector = static_cast<int>(tiling.vector());
    tile.min_blocks = tiling.blocks_at_once();
    tile.blocks = std::min(tiling.count(), tile.min_blocks * sm_count);
    tile.shared_bytes = tiling.shared_bytes();
    tile.part = part;
    const double cycles = tiling.Cycles(tile.blocks);
    if (best && cycles >= fewest) return;
    fewest = cycles;
    best = tile;
  });
  return best;
}

// Of signals others make images (fold_signals.h).
bool IsStem(const StemWork& work) {
  return work.conv.groups == 1 && work.input[1] <= kOfQuad && work.taps() > 1 &&
         work.taps() <= kMostTaps && work.output[2] > 1 &&
         work.output[1] <= kMostResults &&
         work.output[3] % (kAccessBytes / work.element_bytes) == 0 &&
         HasSmallSteps(work.conv);
}

// Whether ops behind it read other tensors that are as large: of f32 a lane has
// no registers for those.
bool ReadsBeside(const LoweredPlan& plan, const Node& conv) {
  const Dims& dims = plan.values[conv.results[0]].desc.dims;
  std::set<int> made = {conv.results[0]};
  for (const Node* node : NodesBehind(plan, conv)) {
    for (const Operand& operand : node->operands) {
      const int value = ValueOf(operand);
      if (value >= 0 && !made.contains(value) &&
          plan.values[value].desc.dims == dims) {
        return true;
      }
    }
    made.insert(node->results.begin(), node->results.end());
  }
  return false;
}

// Whether it is faster than others with any tile, or one that fills.
bool MayBeFaster(const StemWork& work, int64_t sm_count) {
  if (work.element_bytes == 2) return true;
  const int64_t bytes = work.results() * work.element_bytes / sm_count;
  if (work.splits()) {
    return work.steps() <= kMostSplitSteps && bytes >= kFewestSplitBytes;
  }
  return work.taps() * work.output[1] <= kMostWeightsOfF32 &&
         bytes >= kFewestBytesOfF32;
}

// Of f32 tiles that results do not fill are slower.
bool IsFilled(const StemWork& work, const DirectTile& tile) {
  if (work.element_bytes == 2 || work.splits()) return true;
  return Tiling(work, *tile.As<StemTile>()).Filled() >= kLeastFilledOfF32;
}

}  // namespace

std::optional<DirectTile> StemTileOf(const LoweredPlan& plan, const Node& conv,
                                     Grade grade, const Target& target) {
  if (ComputeCapability(target) < kNeededCapability) return std::nullopt;
  const TensorDesc& input = plan.values[ValueOf(conv.operands[0])].desc;
  const TensorDesc& filter = plan.values[ValueOf(conv.operands[1])].desc;
  const StemWork work = {AlignDims(input.dims),
                         AlignDims(plan.values[conv.results[0]].desc.dims),
                         {filter.dims[2], filter.dims[3]},
                         std::get<ConvAttributes>(conv.attributes),
                         ElementSize(input.dtype),
                         ProductsOfParts(input.dtype, grade),
                         NodesBehind(plan, conv).size() < kManyOps
                             ? kMostSums
                             : kMostSumsOfManyOps};
  if (input.dtype != filter.dtype || !IsStem(work) ||
      !MayBeFaster(work, MultiprocessorsOf(target)) ||
      IsReducedBehind(plan, conv) ||
      (input.dtype == DataType::kF32 && ReadsBeside(plan, conv))) {
    return std::nullopt;
  }
  std::optional<DirectTile> tile = TileOf(work, target);
  if (tile && !IsFilled(work, *tile)) tile.reset();
  return tile;
}

}  // namespace kiln
