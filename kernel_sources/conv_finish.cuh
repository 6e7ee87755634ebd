// What follows a normalisation of a convolution's result, in the convolution's
// own kernel: it needs the memory while the convolution needs the tensor cores.
//
// Blocks are numbered in the order in which they start (t.progress[0] counts
// them), image by image. The last block of an image merges the partial states
// that all have left, and says so: t.progress[1 + image] counts the image's
// blocks, and one more when its statistics are there. Meanwhile the last
// kFinishWarps warps of a block's producers apply what follows to a part of an
// image, that of the block kLag before. Behind the blocks that compute are kLag
// that only do this, with all their warps.
//
// A block waits for blocks of lower numbers alone, which have started: however
// few are resident, the oldest goes on.
#ifndef KILN_KERNEL_SOURCES_CONV_FINISH_CUH_
#define KILN_KERNEL_SOURCES_CONV_FINISH_CUH_

#include "conv_partials.cuh"
#include "conv_tile.cuh"
#include "point.cuh"
#include "ptx_counts.cuh"
#include "vectors.cuh"

namespace kiln {

// The block's number. All threads of the block must call it, and have met when
// it returns; `shared` is one word.
template <typename Spec>
__device__ unsigned NumberOfBlock(const typename Spec::Tensors& t,
                                  float* shared) {
  if constexpr (Spec::kFinishWarps == 0) {
    __syncthreads();
    return blockIdx.x;
  } else {
    auto* const word = reinterpret_cast<unsigned*>(shared);
    if (threadIdx.x == 0) *word = ptx::CountOne(t.progress);
    // The word is written.
    __syncthreads();
    // The same in all lanes, so that what depends on it is no divergence.
    const unsigned number = __shfl_sync(~0u, *word, 0);
    __syncthreads();  // before the word is written again
    return number;
  }
}

template <typename Spec>
class ConvFinish {
 public:
  using Tile = ConvTile<Spec>;
  static_assert(Spec::kFinishWarps == 0 || Spec::kImages == 1,
                "A block is part of one image.");

  // Blocks that compute.
  static constexpr unsigned kBlocks =
      Tile::kBlocksOfImage * static_cast<unsigned>(Spec::Output::kN);

  __device__ explicit ConvFinish(const typename Spec::Tensors& t) : t_(t) {}

  // Applies what follows to a slice of the part that block `number` has of an
  // earlier image, as soon as that image's statistics are there. By one warp.
  __device__ void Apply(unsigned number, int slice, int slices) const {
    if (number < Spec::kLag) return;
    const unsigned part = number - Spec::kLag;
    const auto image = static_cast<Index>(part / Tile::kBlocksOfImage);
    const Index of_part =
        static_cast<Index>(part % Tile::kBlocksOfImage) * kVectorsOfPart;
    const Index end_of_part = min(of_part + kVectorsOfPart, kVectors);
    const Index length = (kVectorsOfPart + slices - 1) / slices;
    const Index begin = of_part + slice * length;
    if (begin >= end_of_part) return;
    const Index end = min(begin + length, end_of_part);
    // Seldom for long: statistics are older than half a wave of blocks.
    while (ptx::LoadAcquire(t_.progress + 1 + image) <= Tile::kBlocksOfImage) {
      __nanosleep(200);
    }
    __syncwarp();
    if (Finish::IsAligned(t_)) {
      TakeVectors<true>(image, begin, end);
    } else {
      TakeVectors<false>(image, begin, end);
    }
  }

  // Says that the block has stored its elements and left its partial states. By
  // all threads that multiply; `shared` is one word.
  __device__ void Leave(int image, float* shared) const {
    unsigned* const count = t_.progress + 1 + image;
    auto* const is_last = reinterpret_cast<bool*>(shared);
    // All have stored, and read what was shared before.
    Tile::Sync();
    if (threadIdx.x == 0) {
      *is_last = ptx::CountOne(count) == Tile::kBlocksOfImage - 1;
    }
    // All know whether the block is the last.
    Tile::Sync();
    if (!*is_last) return;
#pragma unroll 1
    for (int state = static_cast<int>(threadIdx.x) / 32;
         state < Spec::kStatesOfImage; state += Tile::kThreads / 32) {
      MergeParts<Spec>(t_, image * Spec::kStatesOfImage + state);
    }
    // The statistics are stored.
    Tile::Sync();
    if (threadIdx.x == 0) ptx::CountOne(count);
  }

 private:
  using Finish = typename Spec::Finish;
  using Channel = typename Finish::Channel;
  using Index = typename Finish::Index;
  using Output = typename Finish::Output;
  static constexpr int kVector = Finish::kVector;
  using Held = typename Finish::template Held<kVector>;
  static constexpr Index kVectorsOfChannel = Output::kH * Output::kW / kVector;
  static_assert(Output::kH * Output::kW % kVector == 0);
  static constexpr Index kVectors = Output::kC * kVectorsOfChannel;
  static constexpr Index kVectorsOfPart =
      (kVectors + Tile::kBlocksOfImage - 1) / Tile::kBlocksOfImage;

  // Of one image, channel by channel.
  template <bool kAligned>
  __device__ void TakeVectors(Index image, Index begin, Index end) const {
    const Index before = image * kVectors;
    const Index lane = threadIdx.x % 32;
#pragma unroll 1
    while (begin < end) {
      const Index channel = begin / kVectorsOfChannel;
      const Index behind = min((channel + 1) * kVectorsOfChannel, end);
      const auto at = PointAt<Output, Index>(
          image, channel, static_cast<Index>(0), static_cast<Index>(0));
      TakeChannel<kAligned>(Finish::ReadChannel(t_, at), before + begin + lane,
                            before + behind);
      begin = behind;
    }
  }

  // In batches that are loaded before the first is computed; one by one where
  // single elements are accessed, to keep the code short.
  template <bool kAligned>
  __device__ void TakeChannel(const Channel& channel, Index begin,
                              Index end) const {
    constexpr int kAtOnce = kAligned ? Finish::kAtOnce : 1;
#pragma unroll 1
    for (Index i = begin; i < end; i += kAtOnce * 32) {
      Held held[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        if (i + j * 32 >= end) continue;
        Finish::FetchHeld(t_, PointOf<Output>((i + j * 32) * kVector), kAligned,
                          &held[j]);
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        if (i + j * 32 >= end) continue;
        const auto at = PointOf<Output>((i + j * 32) * kVector);
#pragma unroll
        for (int k = 0; k < kVector; ++k) {
          Finish::Element(held[j], VectorPointOf<Output, kVector>(at, k),
                          channel);
        }
        Finish::PutHeld(held[j], at, kAligned, t_);
      }
    }
  }

  const typename Spec::Tensors& t_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_FINISH_CUH_
