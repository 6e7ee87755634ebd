// Convolution of windows with few results: output[n,c,y,x] = bias[c] + sum over
// k, i, j of input[n,k,y-padding+i*dilation,x-padding+j*dilation] *
// weight[c,k,i,j].
//
// input N x K x H x W, weight C x K x kernel, output N x C x H' x W',
// contiguous, any storage type; W and W' are multiples of Spec::kVector.
//
// So few results would leave tensor cores, whose tiles have eight at least,
// mostly with zeros to multiply. A thread has Spec::kVector neighbours of each
// of Spec::kRows rows, and all of their results. Of each channel it loads the
// rows that their windows cover, each once, in whole vectors, of which none
// lies across an image's edge, and multiplies them by weights in shared memory,
// which all lanes of a warp read at once. Where there are few pixels, or many
// channels, each of Spec::kSlices parts of a block has a part of the channels.
//
// Padding is multiplied, too: by a weight that is not finite it gives NaN.
#include "finish_vector.cuh"
#include "math.cuh"
#include "narrow_block.cuh"
#include "point.cuh"
#include "storage_types.cuh"
#include "vectors.cuh"

namespace kiln {

// The vector that has element `x` of a row, which may be negative.
template <int kVector>
constexpr __device__ int VectorOf(int x) {
  return x >= 0 ? x / kVector : -((kVector - 1 - x) / kVector);
}

// How a block divides its work, and what it has in shared memory.
template <typename Spec>
struct WindowBlock {
  using Index = typename Spec::Index;
  using Input = typename Spec::Input;
  using Output = typename Spec::Output;
  using Weights = NarrowWeights<Spec>;
  static constexpr int kVector = Spec::kVector;
  static constexpr int kRows = Spec::kRows;
  static constexpr int kChannels = Input::kC;
  static constexpr int kResults = Output::kC;
  using Sums = NarrowSums<Spec, kRows * kResults>;
  // Rows from the first to the last that windows of a thread cover, and
  // vectors, counted from its own.
  static constexpr int kReach = kRows + (Spec::kKernelH - 1) * Spec::kDilationH;
  static constexpr int kFirst = VectorOf<kVector>(-Spec::kPaddingW);
  static constexpr int kEnd =
      VectorOf<kVector>(kVector - 1 + (Spec::kKernelW - 1) * Spec::kDilationW -
                        Spec::kPaddingW) +
      1;
  static constexpr Index kImage = Input::kH * Input::kW;
  static constexpr Index kVectors = Output::kW / kVector;  // of a row
  static constexpr Index kStrips = (Output::kH + kRows - 1) / kRows;

  union {
    Weights weights;
    Sums sums;  // behind all products
  };
};

// Neighbours of some rows.
template <typename Spec>
struct WindowPlace {
  using Block = WindowBlock<Spec>;
  using Index = typename Spec::Index;
  Index n, y, x;
  bool exists;

  __device__ explicit WindowPlace(int lane) {
    constexpr Index kAll = Block::kVectors * Block::kStrips * Spec::Input::kN;
    const Index own =
        static_cast<Index>(blockIdx.x) * Block::Sums::kLanes + lane;
    exists = own < kAll;
    const Index vector = exists ? own : kAll - 1;
    x = vector % Block::kVectors * Spec::kVector;
    y = vector / Block::kVectors % Block::kStrips * Spec::kRows;
    n = vector / Block::kVectors / Block::kStrips;
  }
};

// A row of the input, where windows cover it; zeros beyond the image.
template <typename Spec>
struct WindowRow {
  using Block = WindowBlock<Spec>;
  using Index = typename Spec::Index;
  static constexpr int kVector = Spec::kVector;
  static constexpr int kRowWeights = Block::Weights::kRow;
  Vector<typename Spec::InputType, kVector>
      vectors[Block::kEnd - Block::kFirst];

  // `first`: where the own vector lies.
  __device__ void Fetch(const typename Spec::Tensors& t, Index first, Index x,
                        bool is_inside, bool is_aligned) {
#pragma unroll
    for (int v = Block::kFirst; v < Block::kEnd; ++v) {
      auto& vector = vectors[v - Block::kFirst];
      vector = {};
      const Index column = x + v * kVector;
      if (is_inside && column >= 0 && column < Spec::Input::kW) {
        kiln::Fetch(t.input, first + v * kVector, is_aligned, &vector);
      }
    }
  }

  // The element that is `offset` from the first of the own vector.
  __device__ float At(int offset) const {
    const int place = offset - Block::kFirst * kVector;
    return ToFloat(vectors[place / kVector].elements[place % kVector]);
  }

  // Times a row of taps, for one row of results.
  __device__ void MultiplyInto(const float (&weights)[kRowWeights],
                               float (&sums)[Block::kResults][kVector]) const {
    alignas(16) float row[kRowWeights];
#pragma unroll
    for (int i = 0; i < kRowWeights; i += 4) {
      *reinterpret_cast<float4*>(row + i) =
          *reinterpret_cast<const float4*>(weights + i);
    }
#pragma unroll
    for (int tap = 0; tap < Spec::kKernelW; ++tap) {
      const int from = tap * Spec::kDilationW - Spec::kPaddingW;
#pragma unroll
      for (int k = 0; k < kVector; ++k) {
        const float element = At(from + k);
#pragma unroll
        for (int c = 0; c < Block::kResults; ++c) {
          sums[c][k] =
              fmaf(element, row[tap * Block::kResults + c], sums[c][k]);
        }
      }
    }
  }
};

// The sums of a thread over its slice's channels.
template <typename Spec>
struct WindowThread {
  using Block = WindowBlock<Spec>;
  using Index = typename Spec::Index;
  float sums[Spec::kRows][Block::kResults][Spec::kVector] = {};

  __device__ void Add(const typename Spec::Tensors& t,
                      const WindowPlace<Spec>& place, int begin, int end,
                      const WindowBlock<Spec>& block) {
    const Index y = place.y - Spec::kPaddingH;
    Index first = FirstOf(place, begin);
#pragma unroll 1
    for (int channel = begin; channel < end; ++channel) {
#pragma unroll
      for (int i = 0; i < Block::kReach; ++i) {
        if (!IsCovered(i)) continue;
        WindowRow<Spec> row;
        row.Fetch(t, first + i * Spec::Input::kW, place.x,
                  y + i >= 0 && y + i < Spec::Input::kH, true);
        AddRow(row, i, block.weights.taps[channel]);
      }
      first += Block::kImage;
    }
  }

  // The same where no access of several elements may be made, in less code.
  __device__ void AddSingly(const typename Spec::Tensors& t,
                            const WindowPlace<Spec>& place, int begin, int end,
                            const WindowBlock<Spec>& block) {
    const Index y = place.y - Spec::kPaddingH;
#pragma unroll
    for (int r = 0; r < Spec::kRows; ++r) {
      const Index first = FirstOf(place, begin);
#pragma unroll 1
      for (int i = 0; i < (end - begin) * Spec::kKernelH; ++i) {
        const int channel = i / Spec::kKernelH;
        const int tap = i % Spec::kKernelH;
        const Index down = r + tap * Spec::kDilationH;
        WindowRow<Spec> row;
        row.Fetch(t, first + channel * Block::kImage + down * Spec::Input::kW,
                  place.x, y + down >= 0 && y + down < Spec::Input::kH, false);
        row.MultiplyInto(block.weights.taps[begin + channel][tap], sums[r]);
      }
    }
  }

  // Instead of the weights.
  __device__ void Leave(WindowBlock<Spec>* block) const {
#pragma unroll
    for (int r = 0; r < Spec::kRows; ++r) {
#pragma unroll
      for (int c = 0; c < Block::kResults; ++c) {
        block->sums.Leave(c * Spec::kRows + r, sums[r][c]);
      }
    }
  }

 private:
  // Of the input: its first row that windows cover, at the own vector.
  static __device__ Index FirstOf(const WindowPlace<Spec>& place, int channel) {
    const Index row = (place.n * Block::kChannels + channel) * Spec::Input::kH +
                      place.y - Spec::kPaddingH;
    return row * Spec::Input::kW + place.x;
  }

  static constexpr __device__ bool IsTap(int row) {
    return row >= 0 && row % Spec::kDilationH == 0 &&
           row / Spec::kDilationH < Spec::kKernelH;
  }
  // Whether any window covers row `i`.
  static constexpr __device__ bool IsCovered(int i) {
    bool is_covered = false;
    for (int r = 0; r < Spec::kRows; ++r) {
      is_covered = is_covered || IsTap(i - r);
    }
    return is_covered;
  }

  __device__ void AddRow(
      const WindowRow<Spec>& row, int i,
      const float (&weights)[Spec::kKernelH][Block::Weights::kRow]) {
#pragma unroll
    for (int r = 0; r < Spec::kRows; ++r) {
      if (IsTap(i - r)) {
        row.MultiplyInto(weights[(i - r) / Spec::kDilationH], sums[r]);
      }
    }
  }
};

// What follows sums, a row of a channel at a time.
template <typename Spec>
__device__ void FinishWindows(const typename Spec::Tensors& t, bool is_aligned,
                              const WindowBlock<Spec>& block) {
  using Block = WindowBlock<Spec>;
  using Index = typename Spec::Index;
  using Output = typename Spec::Output;
  const WindowPlace<Spec> place(Block::Sums::Lane());
  if (!place.exists) return;
  block.sums.template ForEachRow<1>(
      [&](int row, float(&results)[Spec::kVector]) {
        const Index y = place.y + row % Spec::kRows;
        if (y >= Output::kH) return;
        const Index channel = place.n * Block::kResults + row / Spec::kRows;
        const Index i = (channel * Output::kH + y) * Output::kW + place.x;
        FinishVector<Spec>(t, PointOf<Output>(i), is_aligned, results);
      });
}

template <typename Spec>
__device__ void NarrowWindows(const typename Spec::Tensors& t) {
  using Block = WindowBlock<Spec>;
  static_assert(Spec::Input::kW % Spec::kVector == 0 &&
                    Spec::Output::kW % Spec::kVector == 0,
                "Vectors must not cross the end of a row.");
  static_assert(!Spec::kWrapsRows, "Rows end where the image does.");
  static_assert(Block::kChannels >= Spec::kSlices, "Slices have channels.");
  static_assert(sizeof(Block) == Spec::kSharedBytes,
                "The launch has as much of shared memory.");
  extern __shared__ __align__(16) float dynamic_shared[];
  auto* const block = reinterpret_cast<Block*>(dynamic_shared);
  const bool is_aligned = Spec::IsAligned(t) && AreAligned(t.input);
  const int slice = Block::Sums::Slice();
  const int begin = slice * Block::kChannels / Spec::kSlices;
  const int end = (slice + 1) * Block::kChannels / Spec::kSlices;
  block->weights.Load(t);
  __syncthreads();
  const WindowPlace<Spec> place(Block::Sums::Lane());
  WindowThread<Spec> thread;
  if (is_aligned) {
    thread.Add(t, place, begin, end, *block);
  } else {
    thread.AddSingly(t, place, begin, end, *block);
  }
  __syncthreads();
  thread.Leave(block);
  __syncthreads();
  FinishWindows<Spec>(t, is_aligned, *block);
}

}  // namespace kiln
