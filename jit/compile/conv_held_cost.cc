// What blocks that hold images cost (conv_held.cuh, conv_held_windows.cuh).
#include <algorithm>

#include "jit/compile/conv_cost.h"
#include "jit/compile/conv_group_cost.h"

namespace kiln {
namespace {

// In cycles and bytes of a multiprocessor. Each round waits for all: its parts
// add up. Fitted to 260 kernels of 46 plans, from 64 channels of 7 x 7 to P4,
// so that the fastest are chosen, and so that they are held where that is
// faster: times are off by 12 % in the mean. By hand: what rows bring beyond
// their ends, more of it where lanes are a stride apart.
constexpr double kCyclesOfHolding = 24000.0;
constexpr double kCyclesOfRound = 2950.0;
constexpr double kCyclesPerHeldChunk = 530.0;
constexpr double kHeldTurns = 0.79;  // times what products take
constexpr double kHeldWeightBytesPerCycle = 85.0;
constexpr double kHeldInputBytesPerCycle = 22.0;
constexpr double kHeldTurnedBytesPerCycle = 28.0;  // of lines
constexpr double kHeldRowBytes = 32.0;
// Of results beyond what is brought, which most of those kernels had as much
// of: from three plans of 3 to 64 channels, by hand.
constexpr double kHeldResultBytesPerCycle = 17.0;
// What an only round of operands as they are stored takes of that, for nothing
// of another image is beside it. By hand: 0.7 of three plans, 0.9 of a fourth
// that is better not held.
constexpr double kRawRoundAlone = 0.8;
// What they take longer with strides: from one plan of 4 x 4, by hand.
constexpr double kRawSlowedByStride = 1.2;
// What they take of two producers where sums are long. By hand: with both, 0.65
// to 0.7 of two plans.
constexpr double kRawTwoProducersInLong = 0.85;
// What others take longer of a filter in parts of its rows, unless it is
// dilated: by two plans, of which one is better not held.
constexpr double kHeldSlowedByRowParts = 1.2;
constexpr double kHeldCyclesPerInstruction = 0.36;  // of ops, for each element
// What they take more beyond those of P4, the most that the kernels above have:
// from 60 kernels of six plans, with up to five ops that take an exponential.
constexpr double kHeldCyclesPerFurther = 0.8;
constexpr double kIssuedLanes = 128.0;  // in a cycle
// Of blocks that hold windows, whose tiles take a little longer than others:
// fitted to 97 kernels of 12 plans, off by 9 % in the mean. By hand: more
// groups than two, from three plans, and the last strip, which is stored when
// nothing else is left to do.
constexpr double kCyclesOfWindowRound = 5000.0;
constexpr double kSlowedByWindows = 1.1;
constexpr double kSlowedByThirdGroup = 1.15;
constexpr double kHeldBytesPerCycle = 14.0;
// Of the clock as it was, 1.75 GHz, for each of what others count, 1.98.
constexpr double kCyclesUnderLoad = 0.885;

// Of a chunk, with the halo, where blocks hold images.
double InputBytes(const ConvGeometry& g) {
  const auto rows = static_cast<double>(g.plane_height() * g.planes(0));
  const auto columns = static_cast<double>(g.pitch * g.planes(1));
  const auto size = static_cast<double>(ElementSize(g.problem.input_type));
  const auto beyond = static_cast<double>(g.planes(0) * g.planes(1));
  return g.chunk * rows * (columns * size + beyond * kHeldRowBytes);
}

// Of a round, for results that are more than the input.
double CyclesOfHeldResults(const ConvGeometry& g, const ConvDemands& demands) {
  const int64_t channels =
      std::min(g.block_channels(), g.problem.group_outputs());
  const int64_t results = channels * ElementSize(demands.stored_type);
  const int64_t inputs = g.problem.group_inputs() * g.problem.stride[0] *
                         g.problem.stride[1] *
                         ElementSize(g.problem.input_type);
  const int64_t more = std::max<int64_t>(results - inputs, 0);
  return static_cast<double>(more * g.tile_h * g.tile_w) /
         kHeldResultBytesPerCycle;
}

// Of a round, for ops behind the products.
double CyclesOfHeldOps(const ConvGeometry& g, const ConvDemands& demands) {
  const int64_t elements = int64_t{g.groups()} * 64 * 8 * g.tiles_n;
  const int64_t further =
      std::max<int64_t>(demands.instructions - kFewInstructionsOfOps, 0);
  const double of_element =
      static_cast<double>(demands.instructions) * kHeldCyclesPerInstruction +
      static_cast<double>(further) * kHeldCyclesPerFurther;
  return static_cast<double>(elements) / kIssuedLanes * of_element;
}

// Of a strip's windows, of which the last are stored at the end.
double CyclesOfLastStrip(const ConvGeometry& g) {
  return static_cast<double>(g.tiles_per_block * g.kept_window_words() * 4) /
         kHeldBytesPerCycle;
}

// What all takes of the sum of its parts.
double HeldShare(const ConvGeometry& g) {
  if (!g.problem.takes_as_stored()) {
    const bool is_slowed = g.row_parts > 1 && g.problem.dilation[0] == 1;
    return is_slowed ? kHeldSlowedByRowParts : 1.0;
  }
  return (g.rounds() == 1 ? kRawRoundAlone : 1.0) *
         (g.problem.stride[1] > 1 ? kRawSlowedByStride : 1.0) *
         (g.producers > 1 ? InLong(g, 1.0, kRawTwoProducersInLong) : 1.0);
}

// Of strips, whose tiles hide each other as those of others do.
double HeldWindowCycles(const ConvGeometry& g, const ConvDemands& demands) {
  const double slowed =
      kSlowedByWindows * (g.groups() > 2 ? kSlowedByThirdGroup : 1.0);
  const double round = kCyclesOfWindowRound +
                       g.tiles_per_block * slowed * GroupTileCycles(g, demands);
  return CyclesOfLastStrip(g) + GroupBlockCycles(g) +
         static_cast<double>(g.rounds()) * round;
}

}  // namespace

double HeldCycles(const ConvGeometry& g, const ConvDemands& demands) {
  if (g.holds_windows()) return HeldWindowCycles(g, demands);
  const auto chunks = static_cast<double>(g.chunks());
  const double weights = g.keeps_weights ? 0.0 : WeightBytes(g);
  const double rate =
      g.turns_lines ? kHeldTurnedBytesPerCycle : kHeldInputBytesPerCycle;
  const double of_chunk = kCyclesPerHeldChunk +
                          kHeldTurns * g.groups() * CyclesOfTurn(g) +
                          InputBytes(g) / rate;
  const double round =
      kCyclesOfRound + chunks * of_chunk + weights / kHeldWeightBytesPerCycle +
      CyclesOfHeldOps(g, demands) + CyclesOfHeldResults(g, demands);
  const double all = kCyclesOfHolding + static_cast<double>(g.rounds()) * round;
  return all * HeldShare(g) / kCyclesUnderLoad;
}

}  // namespace kiln
