#include "jit/compile/conv_cost.h"

#include <algorithm>

#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// The model, in cycles of a multiprocessor. Measured on an H100 with
// conv_mma.cu: 2.1 instructions were issued in a cycle, and one product of
// 16 x 8 x 8 took 1.6.
constexpr double kIssuedPerCycle = 2.1;
constexpr double kCyclesPerProduct = 1.6;
constexpr double kInstructionsPerCopy = 22.0;
constexpr double kInstructionsPerSplitFour = 45.0;
constexpr double kInstructionsPerElement = 8.0;
constexpr double kInstructionsPerStored = 18.0;   // an element that is stored
constexpr double kInstructionsPerChannel = 14.0;  // of a thread
// Of warpgroups, with conv_wgmma.cu: products, what the producer does and what
// follows the sums hardly overlap.
constexpr double kOverlap = 0.87;
constexpr double kInstructionsPerSum = 6.0;  // of statistics in registers
constexpr double kInstructionsOfPlanes = 12.0;
constexpr double kIssuedByGroup = 0.85;  // in a cycle, by four warps
constexpr double kIssuedByAll = 1.7;
// Of waiting for another tensor's elements, for a warp's.
constexpr double kCyclesPerPlaneRead = 25.0;
constexpr double kCyclesPerRead = 3.0;
constexpr double kInstructionsPerOctet = 60.0;  // loads included
constexpr double kInstructionsPerPart = 20.0;
constexpr double kIssuedByProducer = 0.6;  // in a cycle, by four warps
constexpr double kCyclesPerHandover = 200.0;
constexpr double kCyclesPerBlock = 4000.0;
constexpr double kCyclesPerStage = 700.0;

int Products(const ConvGeometry& g) {
  return 1 + (g.splits_input ? 1 : 0) + (g.splits_weight ? 1 : 0);
}

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
  return {warps * steps * fragments * Products(g) * kCyclesPerProduct,
          warps * steps * (reads + adds + fragments * Products(g))};
}

// For each element.
double TailInstructions(const ConvGeometry& g, const ConvDemands& demands) {
  const double ops = static_cast<double>(demands.instructions);
  if (!g.has_groups()) return ops + kInstructionsPerElement;
  if (!g.channel_rows) {
    const double each =
        demands.stores ? kInstructionsPerStored : kInstructionsPerElement;
    return ops + each + kInstructionsPerChannel / (2 * g.tiles_m);
  }
  return (demands.in_registers() ? kInstructionsPerSum : 0.0) + ops +
         (demands.needs_planes() ? kInstructionsOfPlanes : 0.0);
}

// Of warpgroups: a tile's products, what the producer issues for it, and what
// follows the sums.
double GroupTileCycles(const ConvGeometry& g, const ConvDemands& demands) {
  const double steps = static_cast<double>(g.steps() * g.chunks());
  const double columns = g.tiles_n * 8;
  // Reading A and B from shared memory takes as long as 64 columns at least.
  const double product = std::max(columns / 2, 16 + columns / 4);
  const double products =
      steps * Products(g) * g.tiles_m * g.groups() * product;
  const int64_t chunk_octets = g.chunk / 8;
  const auto octets =
      static_cast<double>(g.chunks() * chunk_octets * g.patch());
  const double bring =
      octets / 32 *
      (kInstructionsPerOctet + kInstructionsPerPart * g.input_parts()) /
      (kIssuedByProducer * g.producers);
  const double issued =
      std::min(kIssuedByGroup * g.groups() * g.resident_blocks, kIssuedByAll);
  const double elements =
      static_cast<double>(g.run()) * static_cast<double>(g.block_channels());
  const double after =
      elements / 32 *
      (TailInstructions(g, demands) / issued +
       static_cast<double>(demands.reads) *
           (g.channel_rows ? kCyclesPerPlaneRead : kCyclesPerRead));
  const double waiting = static_cast<double>(g.chunks()) * kCyclesPerHandover;
  return kOverlap * (g.resident_blocks * (products + after + waiting) + bring);
}

}  // namespace

double TileCycles(const ConvGeometry& g, const ConvDemands& demands) {
  if (g.has_groups()) return GroupTileCycles(g, demands);
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
  const double after = static_cast<double>(g.rows() * g.block_channels()) / 32 *
                       TailInstructions(g, demands) / kIssuedPerCycle;
  const double waiting = chunks * kCyclesPerStage;
  if (g.resident_blocks == 1) {
    return chunks * (before + multiply) + after + waiting;
  }
  // One block's products run during the other's instructions.
  const double issue = chunks * before + after;
  return g.resident_blocks * std::max(issue, chunks * multiply) +
         std::min(issue, chunks * multiply) / 2 + waiting;
}

double ConvCycles(const ConvGeometry& g, double tile_cycles, int sm_count) {
  const int64_t waves =
      CeilDiv(g.blocks(), static_cast<int64_t>(sm_count) * g.resident_blocks);
  return static_cast<double>(waves) *
         (kCyclesPerBlock + tile_cycles * g.tiles_per_block);
}

}  // namespace kiln
