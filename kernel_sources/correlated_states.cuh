// From an image's correlations (correlate.cu) to the states of its normalised
// groups.
#ifndef KILN_KERNEL_SOURCES_CORRELATED_STATES_CUH_
#define KILN_KERNEL_SOURCES_CORRELATED_STATES_CUH_

#include "correlated_rows.cuh"
#include "math.cuh"
#include "mma.cuh"
#include "reducers.cuh"

namespace kiln {

// What a block makes of an image's correlations.
template <typename Spec>
class CorrelatedStates {
 public:
  using Extents = Correlations<Spec>;
  static constexpr int kThreads = 1024;
  static constexpr int kInputs = Spec::Input::kC;
  static constexpr int kOutputs = Spec::Output::kC;
  // Numbers that a row of the filter meets, channels that fill eights included.
  static constexpr int kOfRow = Spec::kTapsW * 8;
  static constexpr int kOfFilter = Spec::kTapsH * kOfRow;
  // Pairs of rows of the filter, of which the first is not below the second.
  static constexpr int kRowPairs = Spec::kTapsH * (Spec::kTapsH + 1) / 2;
  static constexpr int kChannels = 64;  // at once
  static constexpr int kShares = kThreads / kChannels;
  static constexpr int kPitch = kOfFilter + 1;

  struct Shared {
    alignas(16) float correlations[kRowPairs][kOfRow][kOfRow];
    float sums[kOfFilter];
    float pivots[8];
    float scale;  // of the values that correlations and sums are of
    float weights[kChannels][kPitch];
    float factors[kChannels];  // undo the scales of weights
    float squares[kShares][kChannels];
    float sums_of_shares[kShares][kChannels];
    float bases[kShares][kChannels];
    Moments states[kOutputs];
  };

  __device__ CorrelatedStates(const typename Spec::Tensors& t, Shared* shared)
      : t_(t), shared_(*shared), image_(blockIdx.x) {}

  // `await()` returns when the correlations are there.
  template <typename Await>
  __device__ void Run(const Await& await) {
    if (threadIdx.x < 32) {
      const float pivot = PivotOfChannel<Spec>(t_, image_, threadIdx.x / 4);
      if (threadIdx.x % 4 == 0) shared_.pivots[threadIdx.x / 4] = pivot;
    }
    BringWeights(0);
    await();
    Gather();
#pragma unroll 1
    for (int first = 0; first < kOutputs; first += kChannels) {
      if (first > 0) {
        __syncthreads();
        BringWeights(first);
      }
      __syncthreads();
      Share(first);
      __syncthreads();
      if (threadIdx.x < kChannels && first + threadIdx.x < kOutputs) {
        shared_.states[first + threadIdx.x] = StateOf(first);
      }
    }
    __syncthreads();
    for (int group = threadIdx.x; group < Spec::kStatesOfImage;
         group += kThreads) {
      Moments state = shared_.states[group * Spec::kChannelsOfState];
      for (int i = 1; i < Spec::kChannelsOfState; ++i) {
        state.Merge(shared_.states[group * Spec::kChannelsOfState + i]);
      }
      t_.partials[image_ * Spec::kStatesOfImage + group] = state;
    }
  }

 private:
  // The least scale of all parts, of a warp in each of its lanes.
  __device__ float LeastScale(const float* scales) const {
    float least = Infinity();
    for (int i = threadIdx.x % 32; i < Extents::kParts * Spec::kColumnBlocks;
         i += 32) {
      least = fminf(least, scales[i]);
    }
    // Bits of positive numbers are ordered as these are.
    return __uint_as_float(__reduce_min_sync(~0u, __float_as_uint(least)));
  }

  // Four numbers of all parts, which are neighbours there, in the order of
  // products: for each lower row of a pair those parts whose rows it meets. All
  // as if values had the least scale of any part.
  __device__ void Gather() {
    constexpr int kFours = Extents::kFloats / 4;
    const auto* const from =
        reinterpret_cast<const float4*>(t_.correlations) +
        static_cast<long long>(image_) *
            (Extents::kParts * Spec::kColumnBlocks * kFours);
    const float* const scales =
        Extents::ScalesIn(t_.correlations) +
        image_ * (Extents::kParts * Spec::kColumnBlocks);
    const float least = LeastScale(scales);
    if (threadIdx.x == 0) shared_.scale = least;
    for (int i = threadIdx.x; i < kFours; i += kThreads) {
      float sums[Spec::kTapsH][4] = {};
#pragma unroll 1
      for (int column = 0; column < Spec::kColumnBlocks; ++column) {
#pragma unroll 8
        for (int part = 0; part < Extents::kParts; ++part) {
          const int number = column * Extents::kParts + part;
          const float4 x = from[number * kFours + i];
          const float factor = least * InverseOfPower(scales[number]);
          const float factors[2] = {HasSums(i, 0) ? factor : factor * factor,
                                    HasSums(i, 1) ? factor : factor * factor};
          const int first = Extents::FirstOf(part);
#pragma unroll
          for (int row = 0; row < Spec::kTapsH; ++row) {
            if (first < row || first >= row + Spec::Output::kH) continue;
            sums[row][0] = fmaf(x.x, factors[0], sums[row][0]);
            sums[row][1] = fmaf(x.y, factors[0], sums[row][1]);
            sums[row][2] = fmaf(x.z, factors[1], sums[row][2]);
            sums[row][3] = fmaf(x.w, factors[1], sums[row][3]);
          }
        }
      }
      Leave(i, sums);
    }
  }

  // Whether half of such four numbers are sums, not correlations.
  static __device__ bool HasSums(int four, int half) {
    return four / 32 / Spec::kTapsW * 2 + half == Extents::kOnes;
  }

  // Those of two eights' rows of a lane.
  __device__ void Leave(int four, const float (&sums)[Spec::kTapsH][4]) {
    const int lane = four % 32;
    const int number = four / 32 % Spec::kTapsW * 8 + lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int eight = four / 32 / Spec::kTapsW * 2 + half;
      const bool is_tap = Extents::IsTap(eight);
      if (!is_tap && (eight != Extents::kOnes || lane >= 4)) continue;
      const int lag = is_tap ? Extents::LagOf(eight) : 0;
      const int upper = Extents::TapOf(eight) * 8 + lane / 4;
#pragma unroll
      for (int lower = 0; lower < Spec::kTapsH; ++lower) {
        if (lower < lag) continue;
        float* const row =
            is_tap ? shared_.correlations[PairOf(lower - lag, lower)][upper]
                   : shared_.sums + lower * kOfRow;
        row[number] = sums[lower][2 * half];
        row[number + 1] = sums[lower][2 * half + 1];
      }
    }
  }
  // Of rows of the filter.
  static __device__ int PairOf(int upper, int lower) {
    return lower * (lower + 1) / 2 + upper;
  }

  // Rounded and scaled, in the order of `sums`; sixteen threads have a channel.
  __device__ void BringWeights(int first) {
    constexpr int kOfChannel = kInputs * Extents::kTaps;
    constexpr int kOfThread = (kOfFilter / 16 + 1);
    const int channel = threadIdx.x / 16;
    const bool exists = first + channel < kOutputs;
    float weights[kOfThread];
    unsigned most = 0;
#pragma unroll
    for (int j = 0; j < kOfThread; ++j) {
      const int i = threadIdx.x % 16 + 16 * j;
      const bool has = exists && i < kOfChannel;
      const float weight =
          has ? t_.weight[(first + channel) * kOfChannel + i] : 0.0f;
      const unsigned bits = MagnitudeBits(weight);
      const bool is_finite = bits < kInfinityBits;
      weights[j] =
          is_finite ? __uint_as_float(NearestFiniteTf32(weight)) : weight;
      if (is_finite) most = max(most, bits);
    }
#pragma unroll
    for (int mask = 1; mask < 16; mask *= 2) {
      most = max(most, __shfl_xor_sync(~0u, most, mask));
    }
    const int exponent = ScaleExponent(most);
    if (threadIdx.x % 16 == 0) {
      shared_.factors[channel] = PowerOfTwo(-exponent);
    }
#pragma unroll
    for (int j = 0; j < kOfThread; ++j) {
      const int i = threadIdx.x % 16 + 16 * j;
      if (i >= kOfFilter) continue;
      shared_.weights[channel][i % Extents::kTaps * 8 + i / Extents::kTaps] =
          weights[j] * PowerOfTwo(exponent);
    }
  }

  // A thread has a channel, and some of the rows of the correlations.
  __device__ void Share(int first) {
    const int channel = threadIdx.x % kChannels;
    const int share = threadIdx.x / kChannels;
    const float* const weights = shared_.weights[channel];
    float squares = 0.0f;
    float sum = 0.0f;
#pragma unroll 1
    for (int lower = 0; lower < Spec::kTapsH; ++lower) {
      float factors[kOfRow];
#pragma unroll
      for (int j = 0; j < kOfRow; ++j) {
        factors[j] = weights[lower * kOfRow + j];
      }
#pragma unroll 1
      for (int i = share; i < (lower + 1) * kOfRow; i += kShares) {
        const int upper = i / kOfRow;
        const auto* const row = reinterpret_cast<const float4*>(
            shared_.correlations[PairOf(upper, lower)][i % kOfRow]);
        float dot = 0.0f;
#pragma unroll
        for (int j = 0; j < kOfRow; j += 4) {
          const float4 four = row[j / 4];
          dot = fmaf(four.x, factors[j], dot);
          dot = fmaf(four.y, factors[j + 1], dot);
          dot = fmaf(four.z, factors[j + 2], dot);
          dot = fmaf(four.w, factors[j + 3], dot);
        }
        const float weight = weights[i];
        squares = fmaf(upper < lower ? 2.0f * weight : weight, dot, squares);
      }
    }
    float base = 0.0f;
    for (int i = share; i < kOfFilter; i += kShares) {
      sum = fmaf(weights[i], shared_.sums[i], sum);
      base = fmaf(weights[i], shared_.pivots[i % 8] * shared_.scale, base);
    }
    shared_.bases[share][channel] = base;
    shared_.squares[share][channel] = squares;
    shared_.sums_of_shares[share][channel] = sum;
  }

  __device__ Moments StateOf(int first) const {
    const int channel = threadIdx.x;
    float squares = 0.0f;
    float sum = 0.0f;
    float base = 0.0f;
#pragma unroll
    for (int share = 0; share < kShares; ++share) {
      base += shared_.bases[share][channel];
      squares += shared_.squares[share][channel];
      sum += shared_.sums_of_shares[share][channel];
    }
    constexpr float kCount =
        static_cast<float>(Spec::Output::kH * Spec::Output::kW);
    const float mean = sum * (1.0f / kCount);
    const float of_weights = shared_.factors[channel];
    const float factor = InverseOfPower(shared_.scale) * of_weights;
    const float m2 = Maximum(fmaf(-mean, sum, squares), 0.0f);
    Moments state;
    state.count = kCount;
    state.mean = fmaf(base + mean, factor, Spec::BiasOf(t_, first + channel));
    state.m2 = m2 * factor * factor;
    return state;
  }

  const typename Spec::Tensors& t_;
  Shared& shared_;
  const int image_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CORRELATED_STATES_CUH_
