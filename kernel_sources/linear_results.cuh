// From sums in shared memory to results, for linear.cu.
#ifndef KILN_KERNEL_SOURCES_LINEAR_RESULTS_CUH_
#define KILN_KERNEL_SOURCES_LINEAR_RESULTS_CUH_

#include "conv_halves.cuh"
#include "finish_vector.cuh"
#include "linear_tile.cuh"
#include "opaque.cuh"
#include "point.cuh"
#include "ptx_cluster.cuh"
#include "split_parts.cuh"

namespace kiln {

// Adds kCount sums of a block of the cluster, four or one.
template <int kCount>
__device__ void AddFromRank(const float* from, int rank, float* sums) {
  const unsigned there = ptx::MapToRank(from, rank);
  if constexpr (kCount == 4) {
    const float4 four = ptx::LoadFourFromCluster(there);
    sums[0] += four.x;
    sums[1] += four.y;
    sums[2] += four.z;
    sums[3] += four.w;
  } else {
    sums[0] += ptx::LoadFromCluster(there);
  }
}

// Brings the block's share of a tile's images to their end, when all blocks
// that share it have left their sums.
template <typename Spec>
class LinearResults {
 public:
  using Tile = LinearTile<Spec>;

  __device__ LinearResults(const typename Spec::Tensors& t,
                           const LinearPlace& place,
                           const typename Tile::Sums& sums)
      : t_(t), place_(place), sums_(sums) {}

  __device__ void Run() const {
    const bool is_aligned = Spec::IsAligned(t_);
    if constexpr (Spec::kSplitsResult) {
      SplitAll(is_aligned);
    } else {
      FinishAll(is_aligned);
    }
  }

 private:
  using Output = typename Spec::Output;
  static constexpr int kVector = Spec::kVector;
  static constexpr int kChannels = static_cast<int>(Output::kC);
  static constexpr int kImages = static_cast<int>(Output::kN);
  static constexpr int kShare = Tile::kImages / Spec::kParts;
  static constexpr int kNoImage = kImages;
  static_assert(Output::kC % kVector == 0, "Vectors end with rows.");

  using Held = typename Spec::template Held<kVector>;

  // Of a thread, on their way together.
  static constexpr int kAtOnce = 2;

  __device__ void FinishAll(bool is_aligned) const {
    constexpr int kVectors =
        (Tile::kChannels < kChannels ? Tile::kChannels : kChannels) / kVector;
    constexpr int kCount = kShare * kVectors;
#pragma unroll 1
    for (int begin = threadIdx.x; begin < kCount;
         begin += kAtOnce * Tile::kConsumers) {
      Held held[kAtOnce];
      int images[kAtOnce];
      int channels[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const int i = begin + j * Tile::kConsumers;
        images[j] = i < kCount ? place_.part * kShare + i / kVectors : kNoImage;
        channels[j] = i % kVectors * kVector;
        Fetch(images[j], channels[j], is_aligned, held + j);
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        if (!Exists(images[j], channels[j])) continue;
        Finish(images[j], channels[j], is_aligned, held + j);
      }
    }
  }

  __device__ void Fetch(int image, int channel, bool is_aligned,
                        Held* held) const {
    if (!Exists(image, channel)) return;
    Spec::FetchHeld(t_, PointOf(image, channel), Opaque(is_aligned), held);
  }

  __device__ void Finish(int image, int channel, bool is_aligned,
                         Held* held) const {
    float sums[kVector];
    TakeSums(&sums_[image][channel], sums);
    FinishHeld<Spec>(t_, PointOf(image, channel), Opaque(is_aligned), sums,
                     held);
  }

  __device__ bool Exists(int image, int channel) const {
    return place_.image + image < kImages &&
           place_.channel + channel < kChannels;
  }

  __device__ auto PointOf(int image, int channel) const {
    return PointAt<Output, typename Spec::Index>(
        place_.image + image, place_.channel + channel, 0, 0);
  }

  // Of all blocks that share them.
  __device__ void TakeSums(const float* from, float (&sums)[kVector]) const {
    constexpr int kTaken = kVector % 4 == 0 ? 4 : 1;  // by an access
#pragma unroll
    for (int k = 0; k < kVector; ++k) sums[k] = Spec::kParts == 1 ? from[k] : 0;
    if constexpr (Spec::kParts > 1) {
#pragma unroll
      for (int k = 0; k < kVector; k += kTaken) {
#pragma unroll
        for (int part = 0; part < Spec::kParts; ++part) {
          AddFromRank<kTaken>(from + k, part, sums + k);
        }
      }
    }
  }

  // Leaves images of results as parts, of which kLanes threads have one each.
  __device__ void SplitAll(bool is_aligned) const {
    constexpr int kLanes = Tile::kChannels / 8;
    constexpr int kRows = Tile::kConsumers / kLanes;
    static_assert(kVector == 8, "A thread has as many.");
    const int channel = static_cast<int>(threadIdx.x) % kLanes * 8;
    const int first = static_cast<int>(threadIdx.x) / kLanes;
#pragma unroll 1
    for (int begin = 0; begin < kShare; begin += kAtOnce * kRows) {
      Held held[kAtOnce];
      int images[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const int own = begin + j * kRows + first;
        images[j] = own < kShare ? place_.part * kShare + own : kNoImage;
        Fetch(images[j], channel, is_aligned, held + j);
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        float results[8] = {};  // zeros behind the last channel
        if (Exists(images[j], channel)) {
          Finish(images[j], channel, is_aligned, held + j);
#pragma unroll
          for (int k = 0; k < 8; ++k) {
            results[k] = Spec::KeptOf(held[j]).elements[k];
          }
        }
        SplitOne<kLanes>(images[j], channel, results);
      }
    }
  }

  // Called by whole warps; their images are mostly finite.
  template <int kLanes>
  __device__ void SplitOne(int image, int channel, float (&results)[8]) const {
    const bool is_own = Exists(image, 0);
    unsigned most = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) most = max(most, MagnitudeBits(results[k]));
    most = LargestOfLanes<kLanes>(most);
    if (!__any_sync(~0u, most >= kInfinityBits)) {
      if (is_own) Store<true>(image, channel, most, results);
      return;
    }
    most = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) most = max(most, FiniteMagnitude(results[k]));
    most = LargestOfLanes<kLanes>(most);
    if (is_own) Store<false>(image, channel, most, results);
  }

  template <bool kAreFinite>
  __device__ void Store(int image, int channel, unsigned most,
                        float (&results)[8]) const {
    using Parts = SplitParts<kImages, kChannels, Tile::kHalves>;
    const int n = place_.image + image;
    const int exponent = ScaleExponent(most);
    if (channel == 0) t_.factors[n] = PowerOfTwo(-exponent);
    if (channel / 8 >= Parts::kOctets) return;
    const float scale = PowerOfTwo(exponent);
#pragma unroll
    for (int k = 0; k < 8; ++k) results[k] *= scale;
    Parts::template Store<kAreFinite>(results,
                                      Parts::PlaceOf(t_.parts, n, channel / 8));
  }

  const typename Spec::Tensors& t_;
  const LinearPlace& place_;
  const typename Tile::Sums& sums_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_LINEAR_RESULTS_CUH_
