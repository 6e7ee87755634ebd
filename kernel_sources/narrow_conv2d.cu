// Convolution of one tap with few results: output[n,c,y,x] = bias[c] + sum over
// k of input[n,k,y,x] * weight[c,k].
//
// input N x K x H x W, weight C x K x 1 x 1, output N x C x H x W, contiguous,
// any storage type.
//
// So few products would leave tensor cores idle: it is the input that takes
// time, and it goes straight to registers. A thread has Spec::kVector
// neighbours of an image, and all of their results. It multiplies a chunk of
// Spec::kAtOnce channels, while the next one is on its way, by weights in
// shared memory, which all lanes of a warp read at once. Of few pixels or many
// channels, each of Spec::kSlices parts of a block has a part of the chunks.
#include "finish_vector.cuh"
#include "math.cuh"
#include "narrow_block.cuh"
#include "point.cuh"
#include "storage_types.cuh"
#include "vectors.cuh"

namespace kiln {

// How a block divides its work, and what it has in shared memory.
template <typename Spec>
struct NarrowBlock {
  using Index = typename Spec::Index;
  using Input = typename Spec::Input;
  using Weights = NarrowWeights<Spec>;
  static constexpr int kChannels = Input::kC;
  static constexpr int kResults = Spec::Output::kC;
  using Sums = NarrowSums<Spec, kResults>;
  static constexpr int kAtOnce = Spec::kAtOnce;
  // Whole ones; what channels are left are the last slice's.
  static constexpr int kChunks = kChannels / kAtOnce;
  static constexpr Index kPixels = Input::kH * Input::kW;
  static constexpr Index kVectors = kPixels / Spec::kVector;  // of an image

  union {
    Weights weights;
    Sums sums;  // behind all products
  };
};

// A vector of pixels.
template <typename Spec>
struct NarrowPlace {
  using Block = NarrowBlock<Spec>;
  using Index = typename Spec::Index;
  Index n, pixel;
  bool exists;

  __device__ explicit NarrowPlace(int lane) {
    constexpr Index kAll = Block::kVectors * Spec::Input::kN;
    const Index own =
        static_cast<Index>(blockIdx.x) * Block::Sums::kLanes + lane;
    exists = own < kAll;
    const Index vector = exists ? own : kAll - 1;
    n = vector / Block::kVectors;
    pixel = vector % Block::kVectors * Spec::kVector;
  }
  // Of its first element in the input.
  __device__ Index Position() const {
    return n * Block::kChannels * Block::kPixels + pixel;
  }
};

// The input's elements of kCount channels.
template <typename Spec, int kCount>
struct NarrowChunk {
  using Block = NarrowBlock<Spec>;
  using Index = typename Spec::Index;
  Vector<typename Spec::InputType, Spec::kVector> channels[kCount];

  __device__ void Fetch(const typename Spec::Tensors& t, Index first,
                        bool is_aligned) {
    if (is_aligned) {
      FetchAll(t, first, true);
    } else {
      FetchAll(t, first, false);
    }
  }

  // By weights of channels from `first` on.
  __device__ void MultiplyInto(
      const typename Block::Weights& weights, int first,
      float (&sums)[Block::kResults][Spec::kVector]) const {
    constexpr int kRow = Block::Weights::kRow;
#pragma unroll
    for (int channel = 0; channel < kCount; ++channel) {
      float row[kRow];
#pragma unroll
      for (int c = 0; c < kRow; c += 4) {
        *reinterpret_cast<float4*>(row + c) = *reinterpret_cast<const float4*>(
            weights.taps[first + channel][0] + c);
      }
#pragma unroll
      for (int k = 0; k < Spec::kVector; ++k) {
        const float element = ToFloat(channels[channel].elements[k]);
#pragma unroll
        for (int c = 0; c < Block::kResults; ++c) {
          sums[c][k] = fmaf(element, row[c], sums[c][k]);
        }
      }
    }
  }

 private:
  __device__ void FetchAll(const typename Spec::Tensors& t, Index first,
                           bool is_aligned) {
#pragma unroll
    for (int channel = 0; channel < kCount; ++channel) {
      kiln::Fetch(t.input, first + channel * Block::kPixels, is_aligned,
                  &channels[channel]);
    }
  }
};

// The sums of a thread over its slice's channels.
template <typename Spec>
struct NarrowThread {
  using Block = NarrowBlock<Spec>;
  using Chunk = NarrowChunk<Spec, Block::kAtOnce>;
  using Index = typename Spec::Index;
  static constexpr Index kStep = Block::kAtOnce * Block::kPixels;
  float sums[Block::kResults][Spec::kVector] = {};

  // `first`: in the input, of the first channel.
  __device__ void Add(const typename Spec::Tensors& t, Index first, int slice,
                      bool is_aligned, const NarrowBlock<Spec>& block) {
    const int begin = slice * Block::kChunks / Spec::kSlices;
    const int end = (slice + 1) * Block::kChunks / Spec::kSlices;
    Chunk chunk;
    chunk.Fetch(t, first + begin * kStep, is_aligned);
    __syncthreads();  // for the weights
#pragma unroll 1
    for (int i = begin; i < end; ++i) {
      Chunk next;
      next.Fetch(t, first + min(i + 1, end - 1) * kStep, is_aligned);
      chunk.MultiplyInto(block.weights, i * Block::kAtOnce, sums);
      chunk = next;
    }
    if (slice == Spec::kSlices - 1) AddRest(t, first, is_aligned, block);
  }

  // Instead of the weights.
  __device__ void Leave(NarrowBlock<Spec>* block) const {
#pragma unroll
    for (int c = 0; c < Block::kResults; ++c) block->sums.Leave(c, sums[c]);
  }

 private:
  __device__ void AddRest(const typename Spec::Tensors& t, Index first,
                          bool is_aligned, const NarrowBlock<Spec>& block) {
#pragma unroll 1
    for (int channel = Block::kChunks * Block::kAtOnce;
         channel < Block::kChannels; ++channel) {
      NarrowChunk<Spec, 1> rest;
      rest.Fetch(t, first + channel * Block::kPixels, is_aligned);
      rest.MultiplyInto(block.weights, channel, sums);
    }
  }
};

// What follows sums, a channel at a time.
template <typename Spec>
__device__ void FinishNarrow(const typename Spec::Tensors& t, bool is_aligned,
                             const NarrowBlock<Spec>& block) {
  using Block = NarrowBlock<Spec>;
  using Index = typename Spec::Index;
  const NarrowPlace<Spec> place(Block::Sums::Lane());
  if (!place.exists) return;
  block.sums.template ForEachRow<4>([&](int c, float(&results)[Spec::kVector]) {
    const Index i = (place.n * Block::kResults + c) * Block::kPixels;
    FinishVector<Spec>(t, PointOf<typename Spec::Output>(i + place.pixel),
                       is_aligned, results);
  });
}

template <typename Spec>
__device__ void NarrowConv2d(const typename Spec::Tensors& t) {
  using Block = NarrowBlock<Spec>;
  static_assert(Block::kPixels % Spec::kVector == 0,
                "Vectors must not cross the end of a channel.");
  static_assert(Block::kChunks >= Spec::kSlices, "Slices have chunks.");
  static_assert(sizeof(Block) == Spec::kSharedBytes,
                "The launch has as much of shared memory.");
  extern __shared__ __align__(16) float dynamic_shared[];
  auto* const block = reinterpret_cast<Block*>(dynamic_shared);
  bool is_aligned = true;
  if constexpr (Spec::kVector > 1) {
    is_aligned = Spec::IsAligned(t) && AreAligned(t.input);
  }
  const NarrowPlace<Spec> place(Block::Sums::Lane());
  block->weights.Load(t);
  NarrowThread<Spec> thread;
  thread.Add(t, place.Position(), Block::Sums::Slice(), is_aligned, *block);
  __syncthreads();
  thread.Leave(block);
  __syncthreads();
  FinishNarrow<Spec>(t, is_aligned, *block);
}

}  // namespace kiln
