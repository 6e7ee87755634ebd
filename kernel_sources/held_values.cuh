// Reductions over values that threads hold in registers, so that they may take
// as many passes as they like.
//
//   const kiln::WarpLanes<32> lanes;
//   kiln::Sum state;
//   kiln::CountHeld(lanes, x, &state);  // of 32 lanes, into each
#ifndef KILN_KERNEL_SOURCES_HELD_VALUES_CUH_
#define KILN_KERNEL_SOURCES_HELD_VALUES_CUH_

#include "reducers.cuh"

namespace kiln {

// kLanes neighbouring lanes of a warp, a power of two.
template <int kLanes>
struct WarpLanes {
  // All lanes' values combined, by what does not mind their order, into each.
  template <typename Combine>
  __device__ float All(float x, Combine combine) const {
#pragma unroll
    for (int mask = 1; mask < kLanes; mask *= 2) {
      x = combine(x, __shfl_xor_sync(0xffffffff, x, mask));
    }
    return x;
  }
};

// kLanes threads of a block, whole warps, side by side. All threads of the
// block must ask for the same.
template <int kThreads, int kLanes>
class BlockLanes {
  static constexpr int kWarps = kLanes / 32;

 public:
  static constexpr int kWords = 2 * kThreads / 32;

  // `memory` is shared, kWords words.
  __device__ explicit BlockLanes(float* memory) : memory_(memory) {}

  // As WarpLanes. The next call takes the other half of the memory, so that
  // nothing is written that another warp may still read.
  template <typename Combine>
  __device__ float All(float x, Combine combine) {
    x = WarpLanes<32>().All(x, combine);
    float* all = memory_ + half_ * (kThreads / 32);
    half_ = 1 - half_;
    if (threadIdx.x % 32 == 0) all[threadIdx.x / 32] = x;
    __syncthreads();
    float warps[kWarps];
#pragma unroll
    for (int k = 0; k < kWarps; ++k) {
      warps[k] = all[threadIdx.x / kLanes * kWarps + k];
    }
    return OfAll(warps, combine);
  }

 private:
  float* memory_;
  int half_ = 0;
};

// The lanes of a row of neighbours. `memory` is shared, kWords words, and not
// touched where the lanes are of one warp.
template <int kThreads, int kLanes, bool kAreOfWarp = (kLanes <= 32)>
struct RowLanes : WarpLanes<kLanes> {
  static_assert((kLanes & (kLanes - 1)) == 0, "A power of two of a warp.");
  static constexpr int kWords = 1;

  __device__ explicit RowLanes(float*) {}
};
template <int kThreads, int kLanes>
struct RowLanes<kThreads, kLanes, false> : BlockLanes<kThreads, kLanes> {
  static_assert(kLanes % 32 == 0, "Whole warps.");

  __device__ explicit RowLanes(float* memory)
      : BlockLanes<kThreads, kLanes>(memory) {}
};

// kLanes threads of a block above each other: every kThreads / kLanes-th. All
// threads of the block must ask for the same.
template <int kThreads, int kLanes>
class ColumnLanes {
 public:
  // `memory` is shared, 2 * kThreads words.
  __device__ explicit ColumnLanes(float* memory) : memory_(memory) {}

  // As WarpLanes. What is read here is not written before all have met again:
  // of two halves of the memory, the next call takes the other.
  template <typename Combine>
  __device__ float All(float x, Combine combine) {
    if constexpr (kLanes == 1) return x;
    constexpr int kAbreast = kThreads / kLanes;
    float* all = memory_ + half_ * kThreads;
    half_ = 1 - half_;
    all[threadIdx.x] = x;
    __syncthreads();
    float lanes[kLanes];
#pragma unroll
    for (int k = 0; k < kLanes; ++k) {
      lanes[k] = all[k * kAbreast + threadIdx.x % kAbreast];
    }
    return OfAll(lanes, combine);
  }

 private:
  float* memory_;
  int half_ = 0;
};

// Mean, then the differences from it; their sum corrects what rounding left in
// the mean (Chan, Golub and LeVeque, "Algorithms for computing the sample
// variance", 1983). The mean is summed from shares, which do not overflow;
// where the sum of differences does, there is nothing to correct. The lanes
// hold kLength values, and zeros where `is_past(k)` says that x[k] is none.
template <int kLength, typename Lanes, int kCount, typename IsPast>
__device__ void CountHeldMoments(Lanes&& lanes, const float (&x)[kCount],
                                 IsPast is_past, Moments* state) {
  constexpr float kScale = 1.0f / kLength;
  float values[kCount], squares[kCount];
#pragma unroll
  for (int k = 0; k < kCount; ++k) values[k] = x[k] * kScale;
  const float mean = lanes.All(SumOf(values), Add);
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    values[k] = is_past(k) ? 0.0f : x[k] - mean;
    squares[k] = values[k] * values[k];
  }
  float rest = lanes.All(SumOf(values), Add) * kScale;
  if (fabsf(mean) < Infinity() && !(fabsf(rest) < Infinity())) rest = 0.0f;
  const float m2 = lanes.All(SumOf(squares), Add);
  state->count = kLength;
  state->mean = mean + rest;
  // An infinite one stays, and so does a NaN.
  const float corrected = fmaxf(m2 - rest * rest * kLength, 0.0f);
  state->m2 = m2 < Infinity() ? corrected : m2;
}

// The largest value, then one power for each.
template <typename Lanes, int kCount>
__device__ void CountHeldPowers(Lanes&& lanes, const float (&x)[kCount],
                                LogSumExp* state) {
  const auto larger = [](float a, float b) { return fmaxf(a, b); };
  state->largest = lanes.All(OfAll(x, larger), larger);
  const float pivot = PivotOf(state->largest);
  float powers[kCount];
#pragma unroll
  for (int k = 0; k < kCount; ++k) powers[k] = Exp(x[k] - pivot);
  state->scaled.sum = lanes.All(SumOf(powers), Add);
}

// Takes all lanes' values into the state of each; values that are none are
// neutral ones. Sums are of pairs of pairs, with a rounding for each doubling.
template <typename Lanes, typename Reducer, int kCount>
__device__ void CountHeld(Lanes&& lanes, const float (&x)[kCount],
                          Reducer* state) {
  if constexpr (__is_base_of(Sum, Reducer)) {
    state->sum = lanes.All(SumOf(x), Add);
  } else if constexpr (__is_base_of(Amax, Reducer)) {
    state->largest = lanes.All(OfAll(x, Maximum), Maximum);
  } else if constexpr (__is_base_of(Amin, Reducer)) {
    state->smallest = lanes.All(OfAll(x, Minimum), Minimum);
  } else {
    CountHeldPowers(lanes, x, state);
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_HELD_VALUES_CUH_
