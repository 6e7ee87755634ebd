// group_norm, batch_norm and softmax, of statistics that are there: those of
// kiln_eager_merge, or a batch_norm's operands.
#ifndef KILN_KERNEL_SOURCES_EAGER_NORMALIZE_CUH_
#define KILN_KERNEL_SOURCES_EAGER_NORMALIZE_CUH_

#include "eager_extent.cuh"
#include "eager_parameters.cuh"
#include "math.cuh"
#include "point.cuh"

namespace kiln {

// What the elements of a tensor have in common with some of the others.
struct EagerTensors {
  const float* statistics;  // pairs; of kBatch null
  const float* mean;        // of kBatch, as `variance`
  const float* variance;
  const float* weight;  // null: 1
  const float* bias;    // null: 0
};

__device__ inline float EagerNormalized(const EagerNormalize& p,
                                        const EagerTensors& t, long long i,
                                        float x) {
  long long row = i;
  const long long inner = TakeInner(p.inner, &row);
  TakeInner(p.row, &row);
  if (p.norm == EagerNorm::kSoftmax) {
    const float* pair = t.statistics + 2 * (row * p.inner.size + inner);
    return Softmax(x, pair[0], pair[1]);
  }
  long long rest = i;
  TakeInner(p.image, &rest);
  const long long channel = TakeInner(p.channels, &rest);
  const bool is_batch = p.norm == EagerNorm::kBatch;
  const float mean = is_batch ? t.mean[channel] : t.statistics[2 * row];
  const float variance =
      is_batch ? t.variance[channel] : t.statistics[2 * row + 1];
  return Normalize(x, mean, ReciprocalStd(variance, p.eps),
                   t.weight != nullptr ? t.weight[channel] : 1.0f,
                   t.bias != nullptr ? t.bias[channel] : 0.0f);
}

__device__ inline void EagerNormalizeKernel(const EagerNormalize& p,
                                            const float* x,
                                            const EagerTensors& t,
                                            float* result) {
#pragma unroll 1
  for (long long i = GridStart<long long>(); i < p.count;
       i += GridStride<long long>()) {
    result[i] = EagerNormalized(p, t, i, x[i]);
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_EAGER_NORMALIZE_CUH_
