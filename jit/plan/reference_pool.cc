#include <algorithm>
#include <cmath>
#include <limits>

#include "jit/plan/reference_ops.h"

namespace kiln {
namespace {

// The positions that a window covers along one axis.
struct Span {
  int64_t begin;   // first position inside the input
  int64_t end;     // behind the last one inside the input
  int64_t padded;  // positions inside the input or its padding
};

// Window `index` along axis `axis` (0 is height). ATen clips a window to the
// padded input before it counts positions for the divisor, and to the input
// afterwards (aten/src/ATen/native/cpu/AvgPoolKernel.cpp).
Span SpanOf(const PoolAttributes& pool, size_t axis, int64_t index,
            int64_t extent) {
  const int64_t dilation = pool.dilation[axis];
  const int64_t begin = index * pool.stride[axis] - pool.padding[axis];
  const int64_t reach = (pool.kernel_size[axis] - 1) * dilation + 1;
  const int64_t end = std::min(begin + reach, extent + pool.padding[axis]);
  int64_t inside = begin;
  if (begin < 0) inside += (-begin + dilation - 1) / dilation * dilation;
  return {inside, std::min(end, extent), end - begin};
}

double MaxOver(const PoolAttributes& pool, const double* plane, int64_t width,
               const Span& y, const Span& x) {
  double result = -std::numeric_limits<double>::infinity();
  for (int64_t i = y.begin; i < y.end; i += pool.dilation[0]) {
    for (int64_t j = x.begin; j < x.end; j += pool.dilation[1]) {
      result = MaximumOf(result, plane[i * width + j]);
    }
  }
  return result;
}

double AverageOver(const PoolAttributes& pool, const double* plane,
                   int64_t width, const Span& y, const Span& x) {
  const int64_t inside = (y.end - y.begin) * (x.end - x.begin);
  const int64_t divisor = pool.divisor_override.value_or(
      pool.count_include_pad ? y.padded * x.padded : inside);
  double sum = 0.0;
  for (int64_t i = y.begin; i < y.end; ++i) {
    for (int64_t j = x.begin; j < x.end; ++j) sum += plane[i * width + j];
  }
  return sum / static_cast<double>(divisor);
}

}  // namespace

bool ReferencePool(const Op& op, ReferenceOperands operands,
                   const ReferenceWorkers& workers, ReferenceTensor* result) {
  const auto& pool = std::get<PoolAttributes>(op.attributes);
  const auto over = op.kind == OpKind::kMaxPool2d ? MaxOver : AverageOver;
  const Dims& in = operands[0]->dims;
  const Dims& out = result->dims;

  const auto pool_plane = [&](int64_t plane, int64_t) {
    const double* const from = &operands[0]->data[plane * in[2] * in[3]];
    double* const to = &result->data[plane * out[2] * out[3]];
    for (int64_t y = 0; y < out[2]; ++y) {
      const Span rows = SpanOf(pool, 0, y, in[2]);
      for (int64_t x = 0; x < out[3]; ++x) {
        const Span columns = SpanOf(pool, 1, x, in[3]);
        to[y * out[3] + x] = over(pool, from, in[3], rows, columns);
      }
    }
  };
  return workers.Run(in[0] * in[1], 1, pool_plane);
}

}  // namespace kiln
