#include "jit/compile/conv_windows.h"

#include <algorithm>
#include <variant>

#include "jit/compile/rounding.h"
#include "jit/compile/window_geometry.h"

namespace kiln {
namespace {

constexpr int64_t kMaxSize = 8;

const Dims& InputOf(const LoweredPlan& plan, const Node& pooling) {
  return plan.values[ValueOf(pooling.operands[0])].desc.dims;
}
const Dims& ResultOf(const LoweredPlan& plan, const Node& pooling) {
  return plan.values[pooling.results[0]].desc.dims;
}

}  // namespace

int64_t ConvWindows::Whole(size_t axis, int64_t length) const {
  if (length < size[axis]) return 0;
  return (length - size[axis]) / stride[axis] * stride[axis] + size[axis];
}

void ConvWindows::CoverAll(const Dims4& dims) {
  if (!lay_out_tiles()) return;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t all = RoundUp(before[i] + dims[2 + i], stride[i]);
    extent[i] = std::max(extent[i], all);
  }
}

ConvWindows WindowsOf(const LoweredPlan& plan, const Node& pooling) {
  const auto& pool = std::get<PoolAttributes>(pooling.attributes);
  const Dims4 from = AlignDims(InputOf(plan, pooling));
  const Dims4 to = AlignDims(ResultOf(plan, pooling));
  ConvWindows windows;
  windows.size = pool.kernel_size;
  windows.stride = pool.stride;
  for (size_t i = 0; i < 2; ++i) {
    const bool is_inside = to[2 + i] * pool.stride[i] <= from[2 + i];
    if (pool.kernel_size[i] == pool.stride[i] && pool.padding[i] == 0 &&
        is_inside) {
      continue;
    }
    windows.before = pool.padding;
    windows.extent = {to[2] * pool.stride[0], to[3] * pool.stride[1]};
  }
  return windows;
}

bool CanPoolTiles(const LoweredPlan& plan, const Node& pooling) {
  const auto& pool = std::get<PoolAttributes>(pooling.attributes);
  if (pool.dilation != Pair{1, 1}) return false;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t size = pool.kernel_size[i];
    const int64_t stride = pool.stride[i];
    if (size > kMaxSize || stride > size || size > 2 * stride) return false;
  }
  if (pooling.op == OpKind::kMaxPool2d) return true;
  return PoolDivisor(pool, InputOf(plan, pooling), ResultOf(plan, pooling)) ==
         pool.kernel_size[0] * pool.kernel_size[1];
}

}  // namespace kiln
