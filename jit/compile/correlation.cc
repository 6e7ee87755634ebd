#include "jit/compile/correlation.h"

#include <algorithm>
#include <limits>

#include "jit/compile/rounding.h"

namespace kiln {
namespace {

constexpr int64_t kMostInputs = 8;     // channels; those of a row of a product
constexpr int64_t kMostTaps = 3;       // each way, by the registers for sums
constexpr int64_t kMostOutputs = 512;  // channels, whose states are shared
constexpr int64_t kColumns = 128;      // of a block, sixteen for each warp
constexpr int64_t kResident = kResidentCorrelators;

// Of two blocks that share a multiprocessor: for each row, with its begin, and
// with what it leaves for each part of its rows; then of the kernel behind, of
// what that does for each 64 channels, and of what one of its blocks gathers of
// an image. From P2 and three others on an H100.
constexpr double kCyclesOfRow = 1150.0;
constexpr double kCyclesOfBlock = 6000.0;
constexpr double kCyclesOfPart = 1500.0;
constexpr double kCyclesOfStates = 5000.0;
constexpr double kCyclesOfChannels = 7000.0;
constexpr double kGatheredPerCycle = 23.0;  // bytes
constexpr int64_t kChannels = 64;

int64_t Taps(const ConvProblem& p) { return p.kernel[0] * p.kernel[1]; }

// Rows at each end that not all taps reach, each a part by itself.
int64_t Edges(const ConvProblem& p) { return p.kernel[0] - 1; }

bool Takes(const ConvProblem& p) {
  const Pair ones = {1, 1};
  const bool is_plain = p.groups == 1 && p.joined == 1 && !p.transposed &&
                        !p.lies_apart() && p.stride == ones &&
                        p.dilation == ones && p.insert == ones;
  const int64_t most =
      std::max(NumElements({p.input.begin(), p.input.end()}),
               NumElements({p.output.begin(), p.output.end()}));
  return is_plain && p.input_type == DataType::kF32 &&
         p.weight_type == DataType::kF32 && p.input[1] <= kMostInputs &&
         p.kernel[0] <= kMostTaps && p.kernel[1] <= kMostTaps &&
         p.output[1] <= kMostOutputs && p.output[2] > Edges(p) &&
         most < std::numeric_limits<int32_t>::max();
}

// Whether it is statistics of all results, and nothing else, that is asked for.
bool Suits(const ConvDemands& demands) {
  return demands.has_statistics && demands.ops == 0 && demands.reads == 0 &&
         !demands.stores && !demands.windows.any() && !demands.holds_images;
}

// What is left of an image for the second kernel, in parts.
int64_t Parts(const ConvProblem& p, const Correlation& c) {
  return c.column_blocks * (c.strips + 2 * Edges(p));
}
// Of each part.
int64_t Correlations(const ConvProblem& p) {
  constexpr int64_t kOfProduct = 128;
  return (Taps(p) + 2) / 2 * p.kernel[1] * kOfProduct;
}

// Correlations of each part, then their scales.
int64_t BytesOfImage(const ConvProblem& p, const Correlation& c) {
  return Parts(p, c) * (Correlations(p) + 1) * 4;
}

double CyclesOf(const ConvProblem& p, const Correlation& c, int sm_count) {
  const int64_t blocks = p.input[0] * c.column_blocks * c.strips;
  const int64_t rows = CeilDiv(p.output[2] - Edges(p), c.strips);
  const double of_block =
      kCyclesOfBlock + kCyclesOfRow * static_cast<double>(rows + 2 * Edges(p)) +
      kCyclesOfPart * static_cast<double>(1 + Edges(p));
  const int64_t rounds = CeilDiv(blocks, kResident * sm_count);
  const int64_t channels = CeilDiv(p.output[1], kChannels);
  return static_cast<double>(rounds) * of_block + kCyclesOfStates +
         kCyclesOfChannels * static_cast<double>(channels) +
         static_cast<double>(BytesOfImage(p, c)) / kGatheredPerCycle;
}

}  // namespace

bool CanCorrelate(const ConvProblem& problem, Grade grade,
                  const Target& target) {
  return target.arch == "sm_90a" && grade == Grade::kTf32 && Takes(problem);
}

std::optional<Correlation> ChooseCorrelation(const ConvProblem& problem,
                                             const ConvDemands& demands,
                                             Grade grade,
                                             const Target& target) {
  if (!CanCorrelate(problem, grade, target) || !Suits(demands)) {
    return std::nullopt;
  }
  Correlation best;
  best.column_blocks = CeilDiv(problem.output[3], kColumns);
  const int64_t rows = problem.output[2] - Edges(problem);
  for (int64_t strips = 1; strips <= rows; ++strips) {
    if (CeilDiv(rows, CeilDiv(rows, strips)) != strips) continue;  // one empty
    Correlation other = best;
    other.strips = strips;
    other.cycles = CyclesOf(problem, other, std::max(target.sm_count, 1));
    if (best.cycles == 0.0 || other.cycles < best.cycles) best = other;
  }
  return best;
}

int64_t CorrelationBytes(const ConvProblem& problem,
                         const Correlation& correlation) {
  return problem.input[0] * BytesOfImage(problem, correlation);
}

int64_t CorrelatorBytes(const ConvProblem& problem) {
  constexpr int64_t kBatch = 4;
  constexpr int64_t kWarps = 8;
  constexpr int64_t kRow = 8 * (kColumns / 8 + 1) * 16;  // of one tap
  const int64_t ring = 2 * kBatch + RoundUp(Edges(problem), kBatch);
  const int64_t constants = 2 * 8 * 16;
  const int64_t arriving = kWarps * kBatch * (32 * 16 + 8);
  const int64_t sums = kWarps * problem.kernel[1] * 32 * 16;
  return (ring + 1) * problem.kernel[1] * kRow + constants + arriving + sums +
         kWarps * 4;
}

int64_t CorrelatedStatesBytes(const ConvProblem& problem) {
  constexpr int64_t kShares = 16;
  const int64_t of_row = problem.kernel[1] * 8;
  const int64_t of_filter = problem.kernel[0] * of_row;
  const int64_t pairs = problem.kernel[0] * (problem.kernel[0] + 1) / 2;
  const int64_t floats = pairs * of_row * of_row + of_filter + 8 + 1 +
                         kChannels * (of_filter + 2) + 3 * kShares * kChannels +
                         3 * problem.output[1];
  return RoundUp(floats * 4, 16);
}

}  // namespace kiln
