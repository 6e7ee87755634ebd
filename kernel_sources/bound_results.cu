// Bounds what a convolution of one tap leaves as lines (result_bounds.cuh): of
// each output channel the sum of its weights' magnitudes is the slope, and
// Spec::Bound says what ops make of it. One block, whose warps take channels in
// turns: it runs when parameters change, not at each launch.
#include "math.cuh"
#include "result_bounds.cuh"
#include "storage_types.cuh"

namespace kiln {

template <typename Spec>
__device__ float SumOfMagnitudes(const typename Spec::Tensors& t, int channel) {
  const auto* const weights =
      t.weight + static_cast<long long>(channel) * Spec::kInputs;
  float sum = 0.0f;
  for (int i = threadIdx.x % 32; i < Spec::kInputs; i += 32) {
    sum += ResultBound::Finite(Load(weights, i));
  }
#pragma unroll
  for (int mask = 1; mask < 32; mask *= 2) {
    sum += __shfl_xor_sync(~0u, sum, mask);
  }
  return fminf(sum, kLargestFinite);
}

template <typename Spec>
__device__ void BoundResults(const typename Spec::Tensors& t) {
  constexpr int kWarps = 1024 / 32;
  __shared__ float slopes[kWarps], offsets[kWarps];
  const int warp = threadIdx.x / 32;
  ResultBound largest(0.0f, 0.0f);
#pragma unroll 1
  for (int channel = warp; channel < Spec::kOutputs; channel += kWarps) {
    const ResultBound bound = Spec::Bound(
        t, channel, ResultBound(SumOfMagnitudes<Spec>(t, channel), 0.0f));
    largest.Join(bound.slope(), bound.offset());
  }
  if (threadIdx.x % 32 == 0) {
    slopes[warp] = largest.slope();
    offsets[warp] = largest.offset();
  }
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int i = 0; i < kWarps; ++i) largest.Join(slopes[i], offsets[i]);
  t.bounds[0] = largest.slope();
  t.bounds[1] = largest.offset();
}

}  // namespace kiln
