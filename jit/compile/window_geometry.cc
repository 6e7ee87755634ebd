#include "jit/compile/window_geometry.h"

#include <algorithm>
#include <numeric>

#include "jit/compile/lowered_plan.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// What lies under four windows must fit in registers.
constexpr int64_t kMaxPoolReach = 20;
constexpr int64_t kMaxPoolRows = 5;
// The same of several windows below each other, and how many: longer code
// takes longer to compile.
constexpr int64_t kMaxTallLoads = 24;
constexpr int64_t kMaxTall = 5;
// What a thread does once, in loads; an output takes one more for itself.
constexpr int64_t kThreadCost = 12;
constexpr int64_t kMaxAccessBytes = 16;
// Columns of a block under large windows, in all; and of one row of windows,
// beyond which rows are cut.
constexpr int64_t kColumnsOfBlock = 1024;
constexpr int64_t kMaxColumns = 4096;
// Shorter rows of windows leave too little to share.
constexpr int64_t kMinRowOfWindows = 4;

}  // namespace

int64_t PoolDivisor(const PoolAttributes& pool, const Dims& input,
                    const Dims& output) {
  if (pool.divisor_override.has_value()) return *pool.divisor_override;
  const Dims4 from = AlignDims(input);
  const Dims4 to = AlignDims(output);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t end = (to[2 + i] - 1) * pool.stride[i] + pool.kernel_size[i] -
                        pool.padding[i];
    if (end > from[2 + i] + pool.padding[i]) return 0;
    if (pool.padding[i] > 0 && !pool.count_include_pad) return 0;
  }
  return pool.kernel_size[0] * pool.kernel_size[1];
}

int PoolVector(const PoolAttributes& pool, const Dims& input,
               const Dims& output) {
  const int64_t reach =
      (pool.kernel_size[1] - 1) * pool.dilation[1] + 3 * pool.stride[1] + 1;
  if (reach > kMaxPoolReach || pool.kernel_size[0] > kMaxPoolRows) return 0;
  const bool in_fours = input.back() % 4 == 0 && output.back() % 4 == 0;
  return in_fours && NumElements(output) >= kMinVectorised ? 4 : 1;
}

int PoolTall(const PoolAttributes& pool, const Dims& output) {
  const Dims4 to = AlignDims(output);
  // Windows of one row have none in common with those below.
  if (pool.dilation[0] != 1 || pool.kernel_size[0] == 1) return 1;
  int64_t best = 1;
  int64_t least = 0;
  for (int64_t tall = 1; tall <= kMaxTall; ++tall) {
    const int64_t rows = (tall - 1) * pool.stride[0] + pool.kernel_size[0];
    const int64_t loads =
        rows * ((pool.kernel_size[1] - 1) * pool.dilation[1] + 1);
    const int64_t strips = CeilDiv(to[2], tall);
    if (tall > 1 && (loads > kMaxTallLoads ||
                     to[0] * to[1] * strips * to[3] < kMinVectorised)) {
      break;
    }
    const int64_t cost = strips * (kThreadCost + loads + tall);
    if (tall > 1 && cost >= least) continue;
    least = cost;
    best = tall;
  }
  return static_cast<int>(best);
}

PoolStrips PoolStripsOf(const PoolAttributes& pool, const Dims& output) {
  const Dims4 to = AlignDims(output);
  const int64_t reach = (pool.kernel_size[1] - 1) * pool.dilation[1] + 1;
  if (to[3] < kMinRowOfWindows || reach > kMaxColumns) return {};
  const int64_t outputs =
      std::min(to[3], (kMaxColumns - reach) / pool.stride[1] + 1);
  const int64_t columns = (outputs - 1) * pool.stride[1] + reach;
  const int64_t all_rows = to[0] * to[1] * to[2];
  const int64_t rows =
      std::clamp<int64_t>(kColumnsOfBlock / columns, 1, all_rows);
  return {static_cast<int>(rows), static_cast<int>(outputs),
          CeilDiv(all_rows, rows) * CeilDiv(to[3], outputs)};
}

int UnfoldVector(const Pair& patch, const TensorDesc& input) {
  const int64_t most = kMaxAccessBytes / ElementSize(input.dtype);
  return static_cast<int>(
      std::gcd(most, std::gcd(patch[1], input.dims.back())));
}

}  // namespace kiln
