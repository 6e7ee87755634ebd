// What tiles of warps cost (conv_mma.cu).
#include <algorithm>

#include "jit/compile/conv_cost.h"

namespace kiln {
namespace {

// In cycles and instructions of a multiprocessor. The first two were measured
// on an H100; the others are estimates by hand, made there while warps computed
// the chains of docs/kernel-notes. No device below sm_90 has been timed.
constexpr double kIssuedPerCycle = 2.1;    // instructions
constexpr double kCyclesPerProduct = 1.6;  // of 16 x 8 x 8
constexpr double kInstructionsPerCopy = 22.0;
constexpr double kInstructionsPerSplitFour = 45.0;
constexpr double kInstructionsPerElement = 8.0;  // of what follows the sums
// Of pooling, for an element and for a window; from 19 tiles of 4 plans.
constexpr double kInstructionsPerPooled = 4.0;
constexpr double kInstructionsPerWindow = 20.0;
constexpr double kCyclesPerBlock = 4000.0;  // before its first tile
constexpr double kCyclesPerStage = 700.0;   // of waiting for a chunk

struct Work {
  double tensor = 0.0;        // cycles of the tensor cores
  double instructions = 0.0;  // of warps
};

// Of multiplying one chunk.
Work ProductWork(const ConvGeometry& g) {
  const double steps = static_cast<double>(g.steps());
  const double warps = g.warps_m * g.warps_n;
  const double fragments = g.tiles_m * g.tiles_n;
  const double reads = (g.splits_input ? 12 : 8) * g.tiles_m + g.tiles_n + 5;
  const double adds = g.splits_input || g.splits_weight ? 4 * fragments : 0.0;
  return {warps * steps * fragments * g.products() * kCyclesPerProduct,
          warps * steps * (reads + adds + fragments * g.products())};
}

}  // namespace

double WarpTileCycles(const ConvGeometry& g, const ConvDemands& demands) {
  const Work product = ProductWork(g);
  const double patch = static_cast<double>(g.chunk * g.patch());
  const double copies = patch / (g.copies_four ? 4 : 1) +
                        (g.chunks() > 1 ? g.weight_words() / 4.0 : 0.0);
  const double before = (copies / 32 * kInstructionsPerCopy +
                         patch / 4 / 32 * kInstructionsPerSplitFour) /
                        kIssuedPerCycle;
  const double multiply =
      std::max(product.tensor, product.instructions / kIssuedPerCycle);
  const double chunks = static_cast<double>(g.chunks());
  const double pooling =
      demands.pools_in_a_loop()
          ? kInstructionsPerPooled +
                kInstructionsPerWindow * demands.windows.density()
          : 0.0;
  const double of_element = static_cast<double>(demands.instructions) +
                            kInstructionsPerElement + pooling;
  const double after = static_cast<double>(g.rows() * g.block_channels()) / 32 *
                       of_element / kIssuedPerCycle;
  const double waiting = chunks * kCyclesPerStage;
  if (g.resident_blocks == 1) {
    return chunks * (before + multiply) + after + waiting;
  }
  // One block's products run during the other's instructions.
  const double issue = chunks * before + after;
  return g.resident_blocks * std::max(issue, chunks * multiply) +
         std::min(issue, chunks * multiply) / 2 + waiting;
}

double WarpBlockCycles() { return kCyclesPerBlock; }

}  // namespace kiln
