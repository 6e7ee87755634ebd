// Stores elements from registers, where the channels of a product are the
// phases of those of a transposed convolution's result
// (Spec::kChannelPhasesH, W): what lanes of neighbouring channels have of a
// pixel lies side by side. Two such lanes give each other half of what they
// have: of more than two phases one of two pixels, so that each stores two
// phases of one; of two phases one of two channels, so that each stores both
// phases of two pixels. Where a row or its beginning is odd, numbers are stored
// one by one.
#ifndef KILN_KERNEL_SOURCES_CONV_PHASE_STORES_CUH_
#define KILN_KERNEL_SOURCES_CONV_PHASE_STORES_CUH_

#include "conv_run_places.cuh"
#include "conv_run_stores.cuh"

namespace kiln {

template <typename Spec>
class PhaseStores {
 public:
  using Index = typename Spec::Index;
  using Result = typename Spec::Result;
  using Tile = ConvTile<Spec>;
  using Places = RunPlaces<Spec>;
  static constexpr int kAcross = Spec::kChannelPhasesW;
  static constexpr int kPhases = Tile::kChannelPhases;
  static constexpr int kBefore = Spec::kBeforeResultW;
  static constexpr int kWidth = Result::kW, kHeight = Result::kH;
  // What is stored at once, where the tensor is aligned to it. Of two phases
  // two places are four numbers, which begin with the second of them where the
  // result begins with it.
  static constexpr bool kHasFours = kAcross == 2 && kWidth % 2 == 0;
  static constexpr bool kHasPairs =
      kAcross % 2 == 0 && kBefore % 2 == 0 && kWidth % 2 == 0;
  static constexpr bool kAreFoursAligned =
      kWidth % 4 == 0 && (Spec::kStepW % 2 == 0 || Tile::kTilesAcross == 1);
  static constexpr int kAtOnce =
      kHasFours ? (kAreFoursAligned ? 4 : 2) : (kHasPairs ? 2 : 1);
  using Sums = float[Spec::kTilesM][Places::kCount];
  static_assert(Spec::kTilesM == 1, "A tile has one run of pixels.");

  __device__ PhaseStores(const ConvBlock<Spec>& block, int tile)
      : block_(block), tile_(tile) {
    places_.Find(block, tile);
  }

  template <typename T>
  __device__ void Store(T* result, const Sums& sums) const {
    if (reinterpret_cast<unsigned long long>(result) % (kAtOnce * sizeof(T)) !=
        0) {
      StoreBy<1>(result, sums[0]);
    } else if constexpr (kHasFours) {
      StoreFours(result, sums[0]);
    } else {
      StoreBy<kAtOnce>(result, sums[0]);
    }
  }

 private:
  using OfThread = float[Places::kCount];

  // A row of the result.
  template <typename T>
  struct Line {
    T* numbers;
    bool is_inside;
  };

  static __device__ bool IsBelow(int extent, int at) {
    return static_cast<unsigned>(at) < static_cast<unsigned>(extent);
  }

  // Of a channel of the block, one of the two that the lane has.
  __device__ int NumberOf(int half) const {
    return block_.channel_block * Tile::kBlockChannels + places_.first +
           8 * half;
  }

  // The line in which that has its phase of a row of pixels.
  template <typename T>
  __device__ Line<T> LineOf(T* result, int row, int half) const {
    const int own = NumberOf(half);
    const int y = block_.y(tile_, places_.part * Spec::kPartStep + row) *
                      Spec::kChannelPhasesH +
                  own % kPhases / kAcross - Spec::kBeforeResultH;
    return {result + places_.PointOfChannel(block_, half).i +
                static_cast<Index>(y) * kWidth,
            own < Tile::kOutputs && IsBelow(kHeight, y)};
  }

  // Where the thread's first pixel of a row has its first phase.
  __device__ int Left() const {
    return (block_.left() + 2 * places_.pair) * kAcross - kBefore;
  }

  template <int kCount, typename T>
  __device__ void StoreBy(T* result, const OfThread& sums) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int row = 0; row < Places::kRows; ++row) {
        StoreRow<kCount>(LineOf(result, row, half), row, half, sums);
      }
    }
  }

  template <int kCount, typename T>
  __device__ void StoreRow(const Line<T>& line, int row, int half,
                           const OfThread& sums) const {
    const int phase = NumberOf(half) % kAcross;
    const int left = Left() + phase;
#pragma unroll
    for (int column = 0; column < Places::kPitch; column += 8) {
      const int i = (row * Places::kPitch + column) / 2;
      const float pixels[2] = {sums[i + 2 * half], sums[i + 2 * half + 1]};
      const int x = left + column * kAcross;
      if constexpr (kCount == 2) {
        const int odd = phase % 2;
        float pair[2];
        ExchangePixels(pixels, odd, pair);
        StoreOne(line, x - odd + odd * kAcross, i, odd, pair);
      } else {
#pragma unroll
        for (int next = 0; next < 2; ++next) {
          const float one[1] = {pixels[next]};
          StoreOne(line, x + next * kAcross, i, next, one);
        }
      }
    }
  }

  // Of one pixel, the first where the lane's phase is even, else the second,
  // that phase and its neighbour.
  static __device__ void ExchangePixels(const float (&pixels)[2], int odd,
                                        float (&pair)[2]) {
    const float given = odd != 0 ? pixels[0] : pixels[1];
    const float taken = __shfl_xor_sync(~0u, given, 4);
    pair[0] = odd != 0 ? taken : pixels[0];
    pair[1] = odd != 0 ? pixels[1] : taken;
  }

  // From column `x` of the result on, what is of the pixel `next` behind that
  // of sum `i`.
  template <int kCount, typename T>
  __device__ void StoreOne(const Line<T>& line, int x, int i, int next,
                           const float (&numbers)[kCount]) const {
    const bool takes = Places::SurelyTakes(i, 1) || places_.Takes(i, next);
    if (line.is_inside && takes && IsBelow(kWidth, x)) {
      StoreNeighbours(line.numbers + x, numbers);
    }
  }

  // Of two phases: lanes with the first have the first of both channels, others
  // the second.
  template <typename T>
  __device__ void StoreFours(T* result, const OfThread& sums) const {
    const int odd = places_.first % 2;
#pragma unroll
    for (int row = 0; row < Places::kRows; ++row) {
      const Line<T> line = LineOf(result, row, odd);
      float fours[4];
      ExchangeChannels(sums, row * Places::kPitch / 2, odd, fours);
#pragma unroll
      for (int column = 0; column < Places::kPitch; column += 8) {
        const int i = (row * Places::kPitch + column) / 2;
        const int x = Left() + column * 2;
        float next[4] = {};
        if (column + 8 < Places::kPitch) {
          ExchangeChannels(sums, i + 4, odd, next);
        }
        if constexpr (kBefore % 2 == 0) {
          StoreFour(line, x, i, 0, fours);
        } else {
          if (column == 0 && places_.pair == 0) {
            const float first[1] = {fours[0]};
            StoreOne(line, x, i, 0, first);
          }
          const float behind = FirstBehind(fours[0], next[0]);
          const float shifted[4] = {fours[1], fours[2], fours[3], behind};
          StoreFour(line, x + 1, i, 1, shifted);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) fours[k] = next[k];
      }
    }
  }

  // Both phases of the two pixels of sum `i`, of one of the lane's channels.
  static __device__ void ExchangeChannels(const OfThread& sums, int i, int odd,
                                          float (&fours)[4]) {
#pragma unroll
    for (int next = 0; next < 2; ++next) {
      const float first = sums[i + next];
      const float second = sums[i + 2 + next];
      const float given = odd != 0 ? first : second;
      const float taken = __shfl_xor_sync(~0u, given, 4);
      fours[2 * next] = odd != 0 ? taken : first;
      fours[2 * next + 1] = odd != 0 ? second : taken;
    }
  }

  // What the lane with the next pixels has first; `next` is what that of the
  // first ones has of the eight pixels behind.
  __device__ float FirstBehind(float first, float next) const {
    const int lane = threadIdx.x % 32;
    return __shfl_sync(~0u, places_.pair == 0 ? next : first,
                       lane / 4 * 4 + (lane + 1) % 4);
  }

  // From column `x` on four numbers, the first of which is the phase `shift` of
  // the pixel of sum `i`.
  template <typename T>
  __device__ void StoreFour(const Line<T>& line, int x, int i, int shift,
                            const float (&numbers)[4]) const {
    const int last = (shift + 3) / 2;
    const bool takes = Places::SurelyTakes(i, last) || places_.Takes(i, last);
    if (takes && x >= 0 && x + 4 <= kWidth) {
      if (line.is_inside) StoreAligned(line.numbers + x, numbers);
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float one[1] = {numbers[k]};
        if (places_.Takes(i, (shift + k) / 2) && line.is_inside &&
            IsBelow(kWidth, x + k)) {
          StoreNeighbours(line.numbers + x + k, one);
        }
      }
    }
  }

  template <typename T>
  static __device__ void StoreAligned(T* to, const float (&numbers)[4]) {
    if constexpr (kAreFoursAligned) {
      StoreNeighbours(to, numbers);
    } else {
      const float first[2] = {numbers[0], numbers[1]};
      const float second[2] = {numbers[2], numbers[3]};
      StoreNeighbours(to, first);
      StoreNeighbours(to + 2, second);
    }
  }

  const ConvBlock<Spec>& block_;
  const int tile_;
  Places places_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_PHASE_STORES_CUH_
