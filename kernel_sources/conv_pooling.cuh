// What poolings make of a window's values, the largest or the mean, and how a
// thread goes down a column of windows.
#ifndef KILN_KERNEL_SOURCES_CONV_POOLING_CUH_
#define KILN_KERNEL_SOURCES_CONV_POOLING_CUH_

#include "conv_channels.cuh"
#include "conv_tile.cuh"
#include "math.cuh"
#include "point.cuh"
#include "reducers.cuh"

namespace kiln {

// Of windows of kPoolH x kPoolW: Finish(Join(Join(Neutral(), a), b) ...).
template <typename Spec>
struct Pooling {
  // Of a channel's values, so that the largest is what is asked for.
  template <typename Channel>
  static __device__ float SignOf(const Channel& channel) {
    if constexpr (Spec::kPoolsMax) {
      return channel.sign;
    } else {
      return 1.0f;
    }
  }
  static __device__ float Neutral() {
    return Spec::kPoolsMax ? -Infinity() : 0.0f;
  }
  // Makes of a value outside the output one that counts in no window.
  static __device__ void LeaveOut(bool outside, float* value) {
    if (Spec::kPoolsPastEdges && outside) *value = Neutral();
  }
  static __device__ float Join(float a, float b) {
    return Spec::kPoolsMax ? Maximum(a, b) : a + b;
  }
  static __device__ float Finish(float joined) {
    constexpr int kCount = static_cast<int>(Spec::kPoolH * Spec::kPoolW);
    if constexpr (Spec::kPoolsMax) return joined;
    if constexpr ((kCount & (kCount - 1)) == 0) return joined * (1.0f / kCount);
    return QuotientByConstant(joined, static_cast<float>(kCount));
  }
};

// Of a column of windows, of which the first is at `at`: LeaveOut for number
// `x` of row `row`.
template <typename Spec, typename Index>
__device__ void LeaveOutPastEdges(const Point<Index>& at, int row, int x,
                                  float* value) {
  const int h = at.h * Spec::kPoolStrideH - Spec::kBeforeH + row;
  const int w = at.w * Spec::kPoolStrideW - Spec::kBeforeW + x;
  Pooling<Spec>::LeaveOut(!ConvBlock<Spec>::IsInside(h, w), value);
}

// What numbers of windows count as, for WindowColumn: themselves, or times the
// sign of their channel, so that their largest is what is asked for.
struct AsTheyAre {
  __device__ float operator()(float value, int, int) const { return value; }
};

template <typename Spec>
class SignedAt {
 public:
  using Index = typename Spec::Index;

  __device__ explicit SignedAt(const Channels<Spec>& channels)
      : channels_(channels) {}

  __device__ float Of(const Point<Index>& at) const {
    return Pooling<Spec>::SignOf(channels_(at));
  }
  __device__ auto operator()(const Point<Index>& at) const {
    return [at, sign = Of(at)](float value, int row, int x) {
      float counted = sign * value;
      LeaveOutPastEdges<Spec>(at, row, x, &counted);
      return counted;
    };
  }

 private:
  const Channels<Spec>& channels_;
};

// Goes down a column of windows that lie in shared memory as rows of kPitch
// numbers, a multiple of 4. What neighbours share is joined once.
template <typename Spec, int kPitch>
struct WindowColumn {
  static constexpr int kOverlap = Spec::kPoolH - Spec::kPoolStrideH;
  static_assert(kOverlap <= Spec::kPoolStrideH,
                "A row is in two windows at most.");

  // Windows of a column of `rows` rows.
  static __device__ constexpr int Down(int rows) {
    return (rows - Spec::kPoolH) / Spec::kPoolStrideH + 1;
  }
  // How many of `down` windows, one below the other, a thread has, where
  // `threads` threads share `columns` columns: all; or, where windows share
  // nothing, so few that every thread has some.
  static __device__ constexpr int OfThread(int down, int columns, int threads) {
    int count = down;
    while (kOverlap == 0 && count > 1 &&
           (down % count != 0 || columns * (down / count) < threads)) {
      --count;
    }
    return count;
  }

  // Calls visit(pooled) for the first `count` of kCount windows, one below the
  // other; the first begins at `corner`. Each number counts as
  // read(number, row, x): `row` from the first window's first, `x` in its
  // window.
  template <int kCount, typename Read, typename Visit>
  static __device__ void Pool(const float* corner, int count, Read read,
                              Visit visit) {
    constexpr int kNumbers = Spec::kPoolStrideH * Spec::kPoolW;
    constexpr int kAtOnce = kNumbers > 24 ? 1 : 24 / kNumbers;
    float shared[kOverlap + 1];
#pragma unroll
    for (int i = 0; i < kOverlap; ++i) {
      shared[i] = JoinRow(corner, i, read);
    }
#pragma unroll kAtOnce
    for (int y = 0; y < kCount; ++y) {
      const int fresh = y * Spec::kPoolStrideH + kOverlap;
      float pooled = Pooling<Spec>::Neutral();
#pragma unroll
      for (int i = 0; i < kOverlap; ++i) {
        pooled = Pooling<Spec>::Join(pooled, shared[i]);
      }
#pragma unroll
      for (int i = 0; i < Spec::kPoolStrideH; ++i) {
        const float row = JoinRow(corner, fresh + i, read);
        const int below = i + kOverlap - Spec::kPoolStrideH;
        if (below >= 0) shared[below] = row;
        pooled = Pooling<Spec>::Join(pooled, row);
      }
      if (y < count) visit(Pooling<Spec>::Finish(pooled));
    }
  }

 private:
  template <typename Read>
  static __device__ float JoinRow(const float* corner, int row, Read read) {
    float numbers[Spec::kPoolW];
    LoadRow(corner + row * kPitch, numbers);
    float joined = Pooling<Spec>::Neutral();
#pragma unroll
    for (int x = 0; x < Spec::kPoolW; ++x) {
      joined = Pooling<Spec>::Join(joined, read(numbers[x], row, x));
    }
    return joined;
  }

  // In accesses as wide as the windows' first columns are aligned.
  static __device__ void LoadRow(const float* from,
                                 float (&row)[Spec::kPoolW]) {
    constexpr int kFours =
        Spec::kPoolStrideW % 4 == 0 ? Spec::kPoolW / 4 * 4 : 0;
    constexpr int kPairs =
        Spec::kPoolStrideW % 2 == 0 ? Spec::kPoolW / 2 * 2 : 0;
#pragma unroll
    for (int x = 0; x < kFours; x += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + x);
      row[x] = four.x;
      row[x + 1] = four.y;
      row[x + 2] = four.z;
      row[x + 3] = four.w;
    }
#pragma unroll
    for (int x = kFours; x < kPairs; x += 2) {
      const float2 two = *reinterpret_cast<const float2*>(from + x);
      row[x] = two.x;
      row[x + 1] = two.y;
    }
#pragma unroll
    for (int x = kPairs > kFours ? kPairs : kFours; x < Spec::kPoolW; ++x) {
      row[x] = from[x];
    }
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_POOLING_CUH_
