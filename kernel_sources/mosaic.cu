// Small images side by side in rows of larger ones, and results cut out of
// them.
//
//   whole[r, c, y, p * kPitch + x] = image[r * kAcross + p, c, y, x]
//
// for images N x C x H x W and wholes of as many rows, contiguous. Mosaic makes
// wholes, with zeros between images, CutMosaic the images; Spec::Read gives an
// element of the one, computed from whatever lies in memory, and Spec::Element
// takes one of the other. A block moves kChannels channels of a whole by way of
// shared memory, for neighbours of one are far from each other in the other.
// There they lie as in what is read: each image's channels, or each channel's
// rows, in one run. Threads read kReadVector neighbours at once, and write
// kVector.
#include "math.cuh"
#include "point.cuh"
#include "storage_types.cuh"
#include "vectors.cuh"

namespace kiln {

template <typename Spec, typename Image, typename Whole>
struct MosaicBlock {
  using Index = typename Spec::Index;
  static constexpr int kPixels = Image::kH * Image::kW;
  static constexpr int kOfWhole = Whole::kH * Whole::kW;

  __device__ MosaicBlock()
      : whole(BlockInMemory<Spec>() % Whole::kN),
        channel(BlockInMemory<Spec>() / Whole::kN * Spec::kChannels),
        channels(min(static_cast<Index>(Spec::kChannels),
                     static_cast<Index>(Image::kC) - channel)),
        images(min(static_cast<Index>(Spec::kAcross),
                   static_cast<Index>(Image::kN) - whole * Spec::kAcross)) {}

  // The i-th element of the block's channels of its p-th image.
  __device__ Point<Index> OfImage(int p, int i) const {
    const Index n = whole * Spec::kAcross + p;
    return {(n * Image::kC + channel) * kPixels + i, n, channel + i / kPixels,
            i / Image::kW % Image::kH, i % Image::kW};
  }
  // The i-th element of its c-th channel of the whole.
  __device__ Point<Index> OfWhole(int c, int i) const {
    return {(whole * Whole::kC + channel + c) * kOfWhole + i, whole,
            channel + c, i / Whole::kW, i % Whole::kW};
  }

  const Index whole;
  const Index channel;  // the first
  const int channels;
  const int images;
};

// Up to kCount runs of up to kElements elements, kVector at a time, by all
// threads of a block.
template <typename Spec, int kCount, int kElements, int kVector>
struct MosaicRuns {
  static_assert(kElements % kVector == 0, "Runs are whole vectors.");
  static constexpr int kWidth = kVector;
  static constexpr int kOfRun = kElements / kVector;
  static constexpr int kSteps =
      (kCount * kOfRun + Spec::kThreads - 1) / Spec::kThreads;
  // In shared memory, of which accesses begin where 16 bytes may, and runs in
  // different banks.
  static constexpr int kPitch = (kElements + 3) / 4 * 4 + 4;
  using Values = Vector<float, kVector>;

  // Calls take(run, i) for the first element of each vector, in `runs` runs of
  // `elements`.
  template <typename Take>
  static __device__ void ForEach(int runs, int elements, const Take& take) {
#pragma unroll 1
    for (int step = 0; step < kSteps; ++step) {
      const int vector = step * Spec::kThreads + threadIdx.x;
      const int run = vector / kOfRun, i = vector % kOfRun * kVector;
      if (run < runs && i < elements) take(run, i);
    }
  }

  // Keeps read(run, i) in `shared`, with several of a thread on their way
  // together.
  template <typename Read>
  static __device__ void Keep(int runs, int elements, float* shared,
                              const Read& read) {
    constexpr int kMost = Spec::kAtOnce / kVector;
    constexpr int kAtOnce = kMost < 1 ? 1 : kMost < kSteps ? kMost : kSteps;
#pragma unroll 1
    for (int step = 0; step < kSteps; step += kAtOnce) {
      Values values[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int vector = (step + k) * Spec::kThreads + threadIdx.x;
        const int run = min(vector / kOfRun, runs - 1);
        values[k] =
            read(run, min(vector % kOfRun * kVector, elements - kVector));
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int vector = (step + k) * Spec::kThreads + threadIdx.x;
        const int run = vector / kOfRun, i = vector % kOfRun * kVector;
        if (run < runs && i < elements) {
          Put(values[k], true, shared, run * kPitch + i);
        }
      }
    }
  }
};

// The elements of what is read from `first` on.
template <typename Spec, int kVector, typename Index>
__device__ Vector<float, kVector> ReadVector(const typename Spec::Tensors& t,
                                             const Point<Index>& first,
                                             bool is_aligned) {
  Vector<float, kVector> values;
  if constexpr (kVector == 1) {
    values.elements[0] = Spec::Read(t, first);
  } else {
    typename Spec::template InputHeld<kVector> held;
    Spec::FetchInputHeld(t, first, is_aligned, &held);
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      values.elements[k] = Spec::Read(
          held, VectorPointOf<typename Spec::Input, kVector>(first, k));
    }
  }
  return values;
}

// Keeps what `point_of` says of runs.
template <typename Spec, typename Runs, typename PointOfRun>
__device__ void KeepRuns(const typename Spec::Tensors& t, int runs,
                         int elements, float* shared,
                         const PointOfRun& point_of) {
  constexpr int kVector = Runs::kWidth;
  const auto keep = [&](bool is_aligned) {
    Runs::Keep(runs, elements, shared, [&](int run, int i) {
      return ReadVector<Spec, kVector>(t, point_of(run, i), is_aligned);
    });
  };
  if constexpr (kVector == 1) {
    keep(true);
  } else {
    // Two loops: a branch in one would keep its loads apart.
    if (Spec::IsInputAligned(t)) {
      keep(true);
    } else {
      keep(false);
    }
  }
}

// Computes the elements of the output from `first` on, of value_of(0) and so
// on.
template <typename Spec, int kVector, typename Index, typename ValueOf>
__device__ void WriteVector(const typename Spec::Tensors& t,
                            const Point<Index>& first,
                            const ValueOf& value_of) {
  if constexpr (kVector == 1) {
    Spec::Element(t, first, value_of(0));
  } else {
    const bool is_aligned = Spec::IsAligned(t);
    typename Spec::template Held<kVector> held;
    Spec::FetchHeld(t, first, is_aligned, &held);
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      Spec::Element(held,
                    VectorPointOf<typename Spec::Output, kVector>(first, k),
                    value_of(k));
    }
    Spec::PutHeld(held, first, is_aligned, t);
  }
}

template <typename Spec>
__device__ void Mosaic(const typename Spec::Tensors& t) {
  using Image = typename Spec::Input;
  using Whole = typename Spec::Output;
  using Block = MosaicBlock<Spec, Image, Whole>;
  using Images =
      MosaicRuns<Spec, Spec::kAcross, Spec::kChannels * Block::kPixels,
                 Spec::kReadVector>;
  using Channels =
      MosaicRuns<Spec, Spec::kChannels, Block::kOfWhole, Spec::kVector>;
  static_assert(Whole::kW % Spec::kVector == 0, "Vectors lie in one row.");
  __shared__ __align__(16) float shared[Spec::kAcross * Images::kPitch];
  const Block block;
  KeepRuns<Spec, Images>(t, block.images, block.channels * Block::kPixels,
                         shared,
                         [&](int p, int i) { return block.OfImage(p, i); });
  // The images are there.
  __syncthreads();
  Channels::ForEach(block.channels, Block::kOfWhole, [&](int c, int i) {
    const int y = i / Whole::kW, column = i % Whole::kW;
    WriteVector<Spec, Spec::kVector>(t, block.OfWhole(c, i), [&](int k) {
      const int p = (column + k) / Spec::kPitch;
      const int x = (column + k) % Spec::kPitch;
      return x < Image::kW && p < block.images
                 ? shared[p * Images::kPitch + c * Block::kPixels +
                          y * Image::kW + x]
                 : 0.0f;
    });
  });
}

template <typename Spec>
__device__ void CutMosaic(const typename Spec::Tensors& t) {
  using Image = typename Spec::Output;
  using Whole = typename Spec::Input;
  using Block = MosaicBlock<Spec, Image, Whole>;
  using Images = MosaicRuns<Spec, Spec::kAcross,
                            Spec::kChannels * Block::kPixels, Spec::kVector>;
  using Channels =
      MosaicRuns<Spec, Spec::kChannels, Block::kOfWhole, Spec::kReadVector>;
  __shared__ __align__(16) float shared[Spec::kChannels * Channels::kPitch];
  const Block block;
  KeepRuns<Spec, Channels>(t, block.channels, Block::kOfWhole, shared,
                           [&](int c, int i) { return block.OfWhole(c, i); });
  // The channels are there.
  __syncthreads();
  Images::ForEach(
      block.images, block.channels * Block::kPixels, [&](int p, int i) {
        WriteVector<Spec, Spec::kVector>(t, block.OfImage(p, i), [&](int k) {
          const int c = (i + k) / Block::kPixels;
          const int y = (i + k) / Image::kW % Image::kH;
          const int x = (i + k) % Image::kW;
          return shared[c * Channels::kPitch + y * Whole::kW +
                        p * Spec::kPitch + x];
        });
      });
}

}  // namespace kiln
