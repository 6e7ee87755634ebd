// max_pool2d and avg_pool2d, by pool2d.cu's definitions: a thread walks through
// the window of one output.
#ifndef KILN_KERNEL_SOURCES_EAGER_POOL2D_CUH_
#define KILN_KERNEL_SOURCES_EAGER_POOL2D_CUH_

#include "eager_extent.cuh"
#include "eager_parameters.cuh"
#include "math.cuh"
#include "point.cuh"
#include "pool_window.cuh"

namespace kiln {

__device__ inline float EagerMaxPool2d(const EagerPool2d& p, const float* plane,
                                       long long top, long long left) {
  float largest = -__int_as_float(0x7f800000);  // -infinity: of no elements
  const TapsInside<long long> rows(top, p.kernel_h, p.dilation_h, p.input_h);
  const TapsInside<long long> columns(left, p.kernel_w, p.dilation_w,
                                      p.input_w);
#pragma unroll 1
  for (long long ky = rows.begin; ky < rows.end; ++ky) {
    const long long row = (top + ky * p.dilation_h) * p.input_w + left;
#pragma unroll 1
    for (long long kx = columns.begin; kx < columns.end; ++kx) {
      largest = Maximum(largest, plane[row + kx * p.dilation_w]);
    }
  }
  return largest;
}

__device__ inline float EagerAvgPool2d(const EagerPool2d& p, const float* plane,
                                       const Window<long long>& rows,
                                       const Window<long long>& columns) {
  // Row by row: short chains of additions keep the error small.
  float sum = 0.0f;
#pragma unroll 1
  for (long long h = rows.begin; h < rows.end; ++h) {
    float row_sum = 0.0f;
#pragma unroll 1
    for (long long w = columns.begin; w < columns.end; ++w) {
      row_sum += plane[h * p.input_w + w];
    }
    sum += row_sum;
  }
  if (p.divisor != 0) return sum / static_cast<float>(p.divisor);
  if (rows.begin >= rows.end || columns.begin >= columns.end) return 0.0f;
  const long long count =
      p.counts_padding != 0
          ? rows.padded_length * columns.padded_length
          : (rows.end - rows.begin) * (columns.end - columns.begin);
  return sum / static_cast<float>(count);
}

__device__ inline void EagerPool2dKernel(const EagerPool2d& p, const float* x,
                                         float* result) {
#pragma unroll 1
  for (long long i = GridStart<long long>(); i < p.count;
       i += GridStride<long long>()) {
    long long rest = i;
    const long long w = TakeInner(p.output_w, &rest);
    const long long h = TakeInner(p.output_h, &rest);
    const float* plane = x + rest * p.input_h * p.input_w;
    if (p.is_max != 0) {
      result[i] = EagerMaxPool2d(p, plane, h * p.stride_h - p.padding_h,
                                 w * p.stride_w - p.padding_w);
    } else {
      result[i] = EagerAvgPool2d(p, plane,
                                 WindowAt<long long>(h, p.kernel_h, p.stride_h,
                                                     p.padding_h, p.input_h),
                                 WindowAt<long long>(w, p.kernel_w, p.stride_w,
                                                     p.padding_w, p.input_w));
    }
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_EAGER_POOL2D_CUH_
