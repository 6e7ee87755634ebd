#include "jit/compile/direct_cost.h"

#include "jit/compile/conv_cost.h"

namespace kiln {
namespace {

// Of stride, dilation and padding: patches of more hold hardly a tile.
constexpr int64_t kMostStep = 64;
constexpr int64_t kMultiprocessors = 132;
constexpr int64_t kFewTurns = 4;
// Of a load, 1 us on an H100, whatever else there is.
constexpr double kCyclesOfTurn = 1750;
constexpr int64_t kSmallPart = 8;  // one in so many

}  // namespace

bool HasSmallSteps(const ConvAttributes& conv) {
  const auto are_small = [](const Pair& steps) {
    return steps[0] <= kMostStep && steps[1] <= kMostStep;
  };
  return are_small(conv.stride) && are_small(conv.dilation) &&
         are_small(conv.padding);
}

int64_t MultiprocessorsOf(const Target& target) {
  return target.sm_count > 0 ? target.sm_count : kMultiprocessors;
}

bool TakeTooManyTurns(int64_t turns, int64_t bytes, int64_t sm_count,
                      double share) {
  const double memory = static_cast<double>(bytes) /
                        (kMovedBytesPerCycle * static_cast<double>(sm_count));
  return turns > kFewTurns &&
         static_cast<double>(turns) * kCyclesOfTurn > share * memory;
}

// They are written and read.
bool AreSmallBeside(int64_t results, int64_t others) {
  return 2 * results * kSmallPart <= others;
}

}  // namespace kiln
