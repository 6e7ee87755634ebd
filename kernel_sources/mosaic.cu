// Small images in rows and columns of one, and results cut out of it.
//
//   whole[c, q * kPitchH + y, p * kPitchW + x] =
//       image[q * kAcross + p, c, y, x]
//
// for images N x C x H x W and the whole 1 x C x ..., kAcross images in a row
// of it; contiguous. Mosaic makes the whole, with zeros between images,
// CutMosaic the images; Spec::Read gives an element of the one, computed from
// whatever lies in memory, and Spec::Element takes one of the other. A block
// moves kChannels channels of a row of images by way of shared memory, for
// neighbours of one are far from each other in the other. Warps go through runs
// of memory: of the images, the channels of one; of the whole, a channel's
// rows.
#include "math.cuh"
#include "point.cuh"
#include "storage_types.cuh"

namespace kiln {

constexpr int kLanes = 32;

template <typename Spec, typename Image, typename Whole>
struct MosaicBlock {
  using Index = typename Spec::Index;
  static constexpr int kPixels = Image::kH * Image::kW;
  static constexpr Index kRows =
      (Image::kN + Spec::kAcross - 1) / Spec::kAcross;

  __device__ MosaicBlock()
      : row(BlockInMemory<Spec>() % kRows),
        channel(BlockInMemory<Spec>() / kRows * Spec::kChannels),
        channels(min(static_cast<Index>(Spec::kChannels),
                     static_cast<Index>(Image::kC) - channel)),
        images(min(static_cast<Index>(Spec::kAcross),
                   static_cast<Index>(Image::kN) - row * Spec::kAcross)) {}

  // The i-th element of the block's channels of its p-th image.
  __device__ Point<Index> OfImage(int p, int i) const {
    const Index n = row * Spec::kAcross + p;
    return {(n * Image::kC + channel) * kPixels + i, n, channel + i / kPixels,
            i / Image::kW % Image::kH, i % Image::kW};
  }
  // The i-th element of its c-th channel's rows of the whole.
  __device__ Point<Index> OfWhole(int c, int i) const {
    const Index h = row * Spec::kPitchH;
    return {((channel + c) * Whole::kH + h) * Whole::kW + i, 0, channel + c,
            h + i / Whole::kW, i % Whole::kW};
  }

  const Index row;      // of images
  const Index channel;  // the first
  const int channels;
  const int images;
};

// A block's threads go through at most kRuns runs of memory, each by so many
// whole warps that all have one.
template <typename Spec, int kRuns>
struct MosaicRuns {
  static constexpr int kThreads =
      kRuns >= Spec::kThreads / kLanes
          ? kLanes
          : Spec::kThreads / kRuns / kLanes * kLanes;
  static constexpr int kAbreast = Spec::kThreads / kThreads;

  // Calls take(run, i) for the `count` elements of each of `runs`.
  template <typename Take>
  static __device__ void ForEach(int runs, int count, const Take& take) {
#pragma unroll 1
    for (int run = threadIdx.x / kThreads; run < runs; run += kAbreast) {
#pragma unroll 4
      for (int i = threadIdx.x % kThreads; i < count; i += kThreads) {
        take(run, i);
      }
    }
  }

  // The same of store(run, i, load(run, i)), with several loads of a thread on
  // their way together.
  template <typename LoadOne, typename StoreOne>
  static __device__ void Move(int runs, int count, const LoadOne& load,
                              const StoreOne& store) {
    constexpr int kAtOnce = Spec::kAtOnce;
#pragma unroll 1
    for (int run = threadIdx.x / kThreads; run < runs; run += kAbreast) {
#pragma unroll 1
      for (int first = threadIdx.x % kThreads; first < count;
           first += kThreads * kAtOnce) {
        float values[kAtOnce];
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) {
          values[k] = load(run, min(first + k * kThreads, count - 1));
        }
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) {
          const int i = first + k * kThreads;
          if (i < count) store(run, i, values[k]);
        }
      }
    }
  }
};

template <typename Spec>
__device__ void Mosaic(const typename Spec::Tensors& t) {
  using Image = typename Spec::Input;
  using Whole = typename Spec::Output;
  // A little more, so that rows begin in different banks.
  constexpr int kRow = Whole::kW + Image::kW;
  constexpr int kPlane = Spec::kPitchH * kRow;
  constexpr int kPixels = Image::kH * Image::kW;
  __shared__ float shared[Spec::kChannels * kPlane];
  const MosaicBlock<Spec, Image, Whole> block;
  for (int i = threadIdx.x; i < Spec::kChannels * kPlane; i += Spec::kThreads) {
    shared[i] = 0.0f;
  }
  // All is zero.
  __syncthreads();
  MosaicRuns<Spec, Spec::kAcross>::Move(
      block.images, block.channels * kPixels,
      [&](int p, int i) { return Spec::Read(t, block.OfImage(p, i)); },
      [&](int p, int i, float value) {
        shared[i / kPixels * kPlane + i / Image::kW % Image::kH * kRow +
               p * Spec::kPitchW + i % Image::kW] = value;
      });
  // The images are there.
  __syncthreads();
  MosaicRuns<Spec, Spec::kChannels>::ForEach(
      block.channels, Spec::kPitchH * Whole::kW, [&](int c, int i) {
        Spec::Element(
            t, block.OfWhole(c, i),
            shared[c * kPlane + i / Whole::kW * kRow + i % Whole::kW]);
      });
}

template <typename Spec>
__device__ void CutMosaic(const typename Spec::Tensors& t) {
  using Image = typename Spec::Output;
  using Whole = typename Spec::Input;
  constexpr int kPixels = Image::kH * Image::kW;
  // A little more, so that images begin in different banks.
  constexpr int kImage = Spec::kChannels * kPixels + Image::kW;
  __shared__ float shared[Spec::kAcross * kImage];
  const MosaicBlock<Spec, Image, Whole> block;
  MosaicRuns<Spec, Spec::kChannels>::Move(
      block.channels, Image::kH * Whole::kW,
      [&](int c, int i) { return Spec::Read(t, block.OfWhole(c, i)); },
      [&](int c, int i, float value) {
        const int column = i % Whole::kW;
        const int p = column / Spec::kPitchW, x = column % Spec::kPitchW;
        if (p >= Spec::kAcross || x >= Image::kW) return;
        shared[p * kImage + c * kPixels + i / Whole::kW * Image::kW + x] =
            value;
      });
  // The images are there.
  __syncthreads();
  MosaicRuns<Spec, Spec::kAcross>::ForEach(
      block.images, block.channels * kPixels, [&](int p, int i) {
        Spec::Element(t, block.OfImage(p, i), shared[p * kImage + i]);
      });
}

}  // namespace kiln
