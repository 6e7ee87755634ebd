// Stores elements from registers, where channels are the rows of the product
// (Spec::kStoresSums): two neighbours of a row at once, or twice as many as a
// tile has phases of its columns, of both rows if it has those of rows. Planes,
// by which whole lines of memory are stored, need room that large tiles do not
// leave.
#ifndef KILN_KERNEL_SOURCES_CONV_RUN_STORES_CUH_
#define KILN_KERNEL_SOURCES_CONV_RUN_STORES_CUH_

#include "conv_channels.cuh"
#include "conv_run_places.cuh"
#include "point.cuh"
#include "storage_types.cuh"

namespace kiln {

// kCount neighbours, whose place is aligned to all of them.
template <int kCount>
__device__ void StoreNeighbours(float* to, const float (&numbers)[kCount]) {
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int k = 0; k < kCount; k += 4) {
      *reinterpret_cast<float4*>(to + k) = make_float4(
          numbers[k], numbers[k + 1], numbers[k + 2], numbers[k + 3]);
    }
  } else if constexpr (kCount == 2) {
    *reinterpret_cast<float2*>(to) = make_float2(numbers[0], numbers[1]);
  } else {
    *to = numbers[0];
  }
}
// Of Float16 and BFloat16.
template <int kCount, typename T>
__device__ void StoreNeighbours(T* to, const float (&numbers)[kCount]) {
  if constexpr (kCount == 8) {
    *reinterpret_cast<uint4*>(to) =
        make_uint4(RoundedPair(numbers[0], numbers[1], T()),
                   RoundedPair(numbers[2], numbers[3], T()),
                   RoundedPair(numbers[4], numbers[5], T()),
                   RoundedPair(numbers[6], numbers[7], T()));
  } else if constexpr (kCount == 4) {
    *reinterpret_cast<uint2*>(to) =
        make_uint2(RoundedPair(numbers[0], numbers[1], T()),
                   RoundedPair(numbers[2], numbers[3], T()));
  } else if constexpr (kCount == 2) {
    *reinterpret_cast<unsigned*>(to) = RoundedPair(numbers[0], numbers[1], T());
  } else {
    FromFloat(numbers[0], to);
  }
}

template <typename Spec>
class RunStores {
 public:
  using Index = typename Spec::Index;
  using Tile = ConvTile<Spec>;
  using Places = RunPlaces<Spec>;
  static constexpr int kPhases = Tile::kPhasesAcross;
  // What a thread has, two pixels of each phase; how many of these lie side by
  // side; and of them, those whose place is aligned to all of them where the
  // output is.
  static constexpr int kOfThread = 2 * kPhases;
  static constexpr int kTogether =
      kPhases == Spec::kPhasesW ? kOfThread : kPhases;
  static constexpr int kAll = Spec::Output::kW | Tile::kColumns | kTogether | 8;
  static constexpr int kAtOnce = kAll & -kAll;
  static_assert(kAtOnce >= 2 && Spec::kBeforeW == 0, "Pairs are neighbours.");
  static_assert(Tile::kPhasesDown == 1 ||
                    (Spec::Output::kH % Tile::kPhasesDown == 0 &&
                     !Spec::kHasUnevenPhases),
                "Phases have as many rows, and taps.");
  using Sums = float[Tile::kTilePhases][Places::kCount];

  __device__ RunStores(const ConvBlock<Spec>& block, int tile)
      : block_(block), tile_(tile) {
    places_.Find(block, tile);
  }

  template <typename T>
  __device__ void Store(T* result, const Sums& sums) const {
    if (reinterpret_cast<unsigned long long>(result) % (kAtOnce * sizeof(T)) ==
        0) {
      StoreBy<kAtOnce>(result, sums);
    } else {
      StoreBy<1>(result, sums);
    }
  }

 private:
  template <int kCount, typename T>
  __device__ void StoreBy(T* result, const Sums& sums) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (!HasChannel(half)) continue;
      T* const plane = result + places_.PointOfChannel(block_, half).i;
#pragma unroll
      for (int row = 0; row < Places::kRows; ++row) {
#pragma unroll
        for (int down = 0; down < Tile::kPhasesDown; ++down) {
          StoreRow<kCount>(plane + OffsetOf(row) + down * Spec::Output::kW, row,
                           half, sums, down * kPhases);
        }
      }
    }
  }

  __device__ bool HasChannel(int half) const {
    return Tile::kOutputs % Tile::kBlockChannels == 0 ||
           block_.channel_block * Tile::kBlockChannels + places_.first +
                   8 * half <
               Tile::kOutputs;
  }
  // Of the thread's first number in a row; of the last row if it is below that.
  __device__ Index OffsetOf(int row) const {
    const int y = block_.y(tile_, places_.part * Spec::kPartStep + row);
    return static_cast<Index>(block_.RowInside(y)) * Spec::Output::kW +
           (block_.left() + 2 * places_.pair) * Spec::kPhasesW + block_.phase_w;
  }

  // Of the phases from `first` on.
  template <int kCount, typename T>
  __device__ void StoreRow(T* to, int row, int half, const Sums& sums,
                           int first) const {
#pragma unroll
    for (int column = 0; column < Places::kPitch; column += 8) {
      const int i = (row * Places::kPitch + column) / 2;
#pragma unroll
      for (int k = 0; k < kOfThread; k += kCount) {
        const int next = k / kPhases;
        if (!Places::SurelyTakes(i, next) && !places_.Takes(i, next)) continue;
        float numbers[kCount];
#pragma unroll
        for (int n = 0; n < kCount; ++n) {
          numbers[n] =
              sums[first + (k + n) % kPhases][i + 2 * half + (k + n) / kPhases];
        }
        StoreNeighbours(to + (column + next) * Spec::kPhasesW + k % kPhases,
                        numbers);
      }
    }
  }

  const ConvBlock<Spec>& block_;
  const int tile_;
  Places places_;
};

// Elements that nothing follows but that they are stored.
template <typename Spec>
class RunTail<Spec, Tail::kStore> {
 public:
  using Index = typename Spec::Index;
  static constexpr int kCount = RunPlaces<Spec>::kCount;

  // Before Take, for the same tile, whose sums may still be on their way.
  __device__ void Prepare(const typename Spec::Tensors&,
                          const Channels<Spec>& channels,
                          const ConvBlock<Spec>& block, int,
                          const float (&scales)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      points_[half] = places_.PointOfChannel(block, half);
      channels_[half] = channels(points_[half]);
      scales_[half] = scales[half];
    }
  }

  // From sums to what is stored.
  __device__ void Take(const typename Spec::Tensors& t, const ConvBlock<Spec>&,
                       int, float (&sums)[Spec::kTilesM][kCount], float*) {
#pragma unroll
    for (int m = 0; m < Spec::kTilesM; ++m) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const int half = i / 2 % 2;
        sums[m][i] = Spec::Read(t, points_[half], sums[m][i], scales_[half],
                                false, channels_[half]);
      }
    }
  }

  __device__ void Finish(const typename Spec::Tensors&, const ConvBlock<Spec>&,
                         float*) {}

 private:
  RunPlaces<Spec> places_;
  // Of the tile that Prepare was called for.
  Point<Index> points_[2];
  typename Spec::Channel channels_[2];
  float scales_[2];
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_RUN_STORES_CUH_
