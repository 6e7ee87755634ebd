// Small images in rows and columns of one, and results cut out of it.
//
//   whole[c, q * kPitchH + y, p * kPitchW + x] = image[q * kAcross + p, c, y,
//   x]
//
// for images N x C x H x W and the whole 1 x C x ..., kAcross images in a row
// of it; contiguous. Mosaic makes the whole, with zeros between images,
// CutMosaic the images; Spec::Read gives an element of the one, computed from
// whatever lies in memory, and Spec::Element takes one of the other. A block
// moves kChannels channels of a row of images by way of shared memory, for
// neighbours of one are far from each other in the other: each element is read
// and written beside its neighbours.
#include "math.cuh"
#include "point.cuh"
#include "storage_types.cuh"

namespace kiln {

// The row of images and the channels of a block.
template <typename Spec, typename Image>
struct MosaicBlock {
  using Index = typename Spec::Index;
  static constexpr Index kRows =
      (Image::kN + Spec::kAcross - 1) / Spec::kAcross;

  __device__ MosaicBlock()
      : row(BlockInMemory<Spec>() % kRows),
        channel(BlockInMemory<Spec>() / kRows * Spec::kChannels) {}
  __device__ bool Has(int p, int c) const {
    return row * Spec::kAcross + p < Image::kN && channel + c < Image::kC;
  }
  __device__ Point<Index> OfImage(int p, int c, int y, int x) const {
    return PointAt<Image, Index>(row * Spec::kAcross + p, channel + c, y, x);
  }
  template <typename Whole>
  __device__ Point<Index> OfWhole(int c, int y, int x) const {
    return PointAt<Whole, Index>(0, channel + c, row * Spec::kPitchH + y, x);
  }

  const Index row;  // of images
  const Index channel;
};

// Where an element of a block's images lies: image, channel, row and column.
struct MosaicElement {
  int p, c, y, x;
};

// The i-th of a block's elements as images lie in memory.
template <typename Spec, typename Image>
__device__ MosaicElement InImages(int i) {
  constexpr int kW = Image::kW, kH = Image::kH;
  return {i / (kW * kH * Spec::kChannels), i / (kW * kH) % Spec::kChannels,
          i / kW % kH, i % kW};
}

// The same as the whole lies in memory, what is between images left out.
template <typename Spec, typename Image>
__device__ MosaicElement InWhole(int i) {
  constexpr int kW = Image::kW, kH = Image::kH, kAcross = Spec::kAcross;
  return {i / kW % kAcross, i / (kW * kAcross * kH), i / (kW * kAcross) % kH,
          i % kW};
}

// Calls load(i) for all i < kCount, then store(i, what it gave); loads of a
// thread are on their way together.
template <typename Spec, int kCount, typename LoadOne, typename StoreOne>
__device__ void MoveMany(const LoadOne& load, const StoreOne& store) {
  constexpr int kAtOnce = Spec::kAtOnce;
#pragma unroll 1
  for (int first = threadIdx.x; first < kCount;
       first += Spec::kThreads * kAtOnce) {
    float values[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      values[k] = load(min(first + k * Spec::kThreads, kCount - 1));
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int i = first + k * Spec::kThreads;
      if (i < kCount) store(i, values[k]);
    }
  }
}

template <typename Spec>
__device__ void Mosaic(const typename Spec::Tensors& t) {
  using Image = typename Spec::Input;
  using Whole = typename Spec::Output;
  // A little more, so that rows begin in different banks.
  constexpr int kRow = Whole::kW + Image::kW;
  constexpr int kPlane = Spec::kPitchH * kRow;
  __shared__ float shared[Spec::kChannels * kPlane];
  const MosaicBlock<Spec, Image> block;
  for (int i = threadIdx.x; i < Spec::kChannels * kPlane; i += Spec::kThreads) {
    shared[i] = 0.0f;
  }
  // All is zero.
  __syncthreads();
  MoveMany<Spec, Spec::kAcross * Spec::kChannels * Image::kH * Image::kW>(
      [&](int i) {
        const MosaicElement e = InImages<Spec, Image>(i);
        if (!block.Has(e.p, e.c)) return 0.0f;
        return Spec::Read(t, block.OfImage(e.p, e.c, e.y, e.x));
      },
      [&](int i, float value) {
        const MosaicElement e = InImages<Spec, Image>(i);
        shared[e.c * kPlane + e.y * kRow + e.p * Spec::kPitchW + e.x] = value;
      });
  // The images are there.
  __syncthreads();
  constexpr int kPixels = Spec::kPitchH * Whole::kW;
  for (int i = threadIdx.x; i < Spec::kChannels * kPixels;
       i += Spec::kThreads) {
    const int c = i / kPixels, y = i / Whole::kW % Spec::kPitchH,
              x = i % Whole::kW;
    if (block.channel + c >= Image::kC) break;
    Spec::Element(t, block.template OfWhole<Whole>(c, y, x),
                  shared[c * kPlane + y * kRow + x]);
  }
}

template <typename Spec>
__device__ void CutMosaic(const typename Spec::Tensors& t) {
  using Image = typename Spec::Output;
  using Whole = typename Spec::Input;
  constexpr int kPixels = Image::kH * Image::kW;
  // A little more, so that images begin in different banks.
  constexpr int kImage = Spec::kChannels * kPixels + Image::kW;
  constexpr int kCount = Spec::kAcross * Spec::kChannels * kPixels;
  __shared__ float shared[Spec::kAcross * kImage];
  const MosaicBlock<Spec, Image> block;
  MoveMany<Spec, kCount>(
      [&](int i) {
        const MosaicElement e = InWhole<Spec, Image>(i);
        if (!block.Has(e.p, e.c)) return 0.0f;
        return Spec::Read(t, block.template OfWhole<Whole>(
                                 e.c, e.y, e.p * Spec::kPitchW + e.x));
      },
      [&](int i, float value) {
        const MosaicElement e = InWhole<Spec, Image>(i);
        shared[e.p * kImage + e.c * kPixels + e.y * Image::kW + e.x] = value;
      });
  // The images are there.
  __syncthreads();
#pragma unroll 4
  for (int i = threadIdx.x; i < kCount; i += Spec::kThreads) {
    const MosaicElement e = InImages<Spec, Image>(i);
    if (!block.Has(e.p, e.c)) continue;
    Spec::Element(t, block.OfImage(e.p, e.c, e.y, e.x),
                  shared[e.p * kImage + i % (Spec::kChannels * kPixels)]);
  }
}

}  // namespace kiln
