// conv2d and conv_transpose2d, by conv2d.cu's formula: a thread has one pixel
// of several channels, so that each element that it loads is multiplied as
// often.
#ifndef KILN_KERNEL_SOURCES_EAGER_CONV2D_CUH_
#define KILN_KERNEL_SOURCES_EAGER_CONV2D_CUH_

#include "eager_extent.cuh"
#include "eager_parameters.cuh"
#include "point.cuh"

namespace kiln {

// The input's position under tap `tap` of the output's position `at`, or -1.
__device__ inline long long EagerTapAt(bool is_transposed, int at, int tap,
                                       unsigned stride, int padding,
                                       int dilation, int extent) {
  const long long offset = static_cast<long long>(tap) * dilation;
  long long from = static_cast<long long>(at) * stride - padding + offset;
  if (is_transposed) {
    from = static_cast<long long>(at) + padding - offset;
    // At most 32 bits from here on, whose division is no call.
    const auto distance = static_cast<unsigned>(from);
    if (from < 0 || distance % stride != 0) return -1;
    from = distance / stride;
  }
  return from >= 0 && from < extent ? from : -1;
}

// sums[j] += the products of one tap, over the channels of a group. Some
// channels have sums of their own, as rows of the filter have: chains of
// additions are short, and so are errors.
template <int kOutputs>
__device__ void EagerTapProducts(const EagerConv2d& p, const float* x,
                                 const float* weight, float (&sums)[kOutputs]) {
  constexpr int kChannels = 32;
  const long long plane = static_cast<long long>(p.input_h) * p.input_w;
#pragma unroll 1
  for (long long first = 0; first < p.input_channels; first += kChannels) {
    const long long end =
        min(first + kChannels, static_cast<long long>(p.input_channels));
    float some[kOutputs] = {};
#pragma unroll 4
    for (long long channel = first; channel < end; ++channel) {
      const float element = x[channel * plane];
      const float* filter = weight + channel * p.weight_input;
#pragma unroll
      for (int j = 0; j < kOutputs; ++j) {
        some[j] = fmaf(element, filter[j * p.weight_output], some[j]);
      }
    }
#pragma unroll
    for (int j = 0; j < kOutputs; ++j) sums[j] += some[j];
  }
}

// Pixel (h, w) of kOutputs channels of group `group` of image n, from channel
// `channel` of the group on.
template <int kOutputs>
__device__ void EagerConv2dAt(const EagerConv2d& p, long long n, int group,
                              int channel, int h, int w, const float* x,
                              const float* weight, const float* bias,
                              float* result) {
  const long long group_of_image = n * p.groups.size + group;
  const float* image =
      x + group_of_image * p.input_channels * p.input_h * p.input_w;
  const float* filters =
      weight + group * p.weight_group + channel * p.weight_output;
  float sums[kOutputs] = {};
#pragma unroll 1
  for (int ky = 0; ky < p.kernel_h; ++ky) {
    const long long from_h = EagerTapAt(p.is_transposed != 0, h, ky, p.stride_h,
                                        p.padding_h, p.dilation_h, p.input_h);
    if (from_h < 0) continue;
    float of_row[kOutputs] = {};
#pragma unroll 1
    for (int kx = 0; kx < p.kernel_w; ++kx) {
      const long long from_w =
          EagerTapAt(p.is_transposed != 0, w, kx, p.stride_w, p.padding_w,
                     p.dilation_w, p.input_w);
      if (from_w < 0) continue;
      EagerTapProducts(p, image + from_h * p.input_w + from_w,
                       filters + static_cast<long long>(ky) * p.kernel_w + kx,
                       of_row);
    }
#pragma unroll
    for (int j = 0; j < kOutputs; ++j) sums[j] += of_row[j];
  }
  const long long plane = p.output_h.size * p.output_w.size;
  const long long first = group_of_image * p.output_channels + channel;
#pragma unroll
  for (int j = 0; j < kOutputs; ++j) {
    const float of_channel =
        bias != nullptr ? bias[group * p.output_channels + channel + j] : 0.0f;
    result[(first + j) * plane + h * p.output_w.size + w] =
        sums[j] + of_channel;
  }
}

template <int kOutputs>
__device__ void EagerConv2dBy(const EagerConv2d& p, const float* x,
                              const float* weight, const float* bias,
                              float* result) {
#pragma unroll 1
  for (long long i = GridStart<long long>(); i < p.count;
       i += GridStride<long long>()) {
    long long rest = i;
    const int w = static_cast<int>(TakeInner(p.output_w, &rest));
    const int h = static_cast<int>(TakeInner(p.output_h, &rest));
    const int channel =
        static_cast<int>(TakeInner(p.threads_c, &rest)) * kOutputs;
    const int group = static_cast<int>(TakeInner(p.groups, &rest));
    EagerConv2dAt<kOutputs>(p, rest, group, channel, h, w, x, weight, bias,
                            result);
  }
}

__device__ inline void EagerConv2dKernel(const EagerConv2d& p, const float* x,
                                         const float* weight, const float* bias,
                                         float* result) {
  switch (p.outputs_per_thread) {
    case 8:
      return EagerConv2dBy<8>(p, x, weight, bias, result);
    case 4:
      return EagerConv2dBy<4>(p, x, weight, bias, result);
    default:
      return EagerConv2dBy<1>(p, x, weight, bias, result);
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_EAGER_CONV2D_CUH_
