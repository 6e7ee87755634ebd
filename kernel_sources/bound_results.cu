// Bounds what a convolution of one tap leaves as lines (result_bounds.cuh): of
// each output channel by the sum of its weights' magnitudes, of which
// Spec::Bound says what ops make. One block, whose warps take channels in
// turns: it runs when parameters change, not at each launch.
#include "math.cuh"
#include "result_bounds.cuh"
#include "storage_types.cuh"

namespace kiln {

// Of the sums of a channel.
template <typename Spec>
__device__ ResultBound BoundSums(const typename Spec::Tensors& t, int channel) {
  const auto* const weights =
      t.weight + static_cast<long long>(channel) * Spec::kInputs;
  float sum = 0.0f;
  bool is_special = false;
  for (int i = threadIdx.x % 32; i < Spec::kInputs; i += 32) {
    const float weight = Load(weights, i);
    is_special |= !IsFinite(weight);
    sum += IsFinite(weight) ? fabsf(weight) : 0.0f;
  }
#pragma unroll
  for (int mask = 1; mask < 32; mask *= 2) {
    sum += __shfl_xor_sync(~0u, sum, mask);
  }
  return ResultBound::OfSums(ClampToFinite(sum),
                             __any_sync(~0u, is_special) != 0);
}

template <typename Spec>
__device__ void BoundResults(const typename Spec::Tensors& t) {
  constexpr int kWarps = Spec::kThreads / 32;
  __shared__ BoundSide of_warps[kWarps][2];
  const int warp = threadIdx.x / 32;
  ResultBound largest = ResultBound::Within(kLargestFinite, -kLargestFinite);
#pragma unroll 1
  for (int channel = warp; channel < Spec::kOutputs; channel += kWarps) {
    largest.Join(Spec::Bound(t, channel, BoundSums<Spec>(t, channel)));
  }
  if (threadIdx.x % 32 == 0) {
    of_warps[warp][0] = largest.up;
    of_warps[warp][1] = largest.down;
  }
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (const auto& sides : of_warps) {
    largest.up.Join(sides[0]);
    largest.down.Join(sides[1]);
  }
  auto* const bounds = reinterpret_cast<BoundSide*>(t.bounds);
  bounds[0] = largest.up;
  bounds[1] = largest.down;
}

}  // namespace kiln
