// What blocks of narrow_conv2d.cu and narrow_windows.cu have in shared memory:
// the filters' weights, and then sums. Each of Spec::kSlices parts of a block
// has a part of the channels of the same places, one for each of its threads.
#ifndef KILN_KERNEL_SOURCES_NARROW_BLOCK_CUH_
#define KILN_KERNEL_SOURCES_NARROW_BLOCK_CUH_

#include "storage_types.cuh"

namespace kiln {

// A channel's taps, row by row: of each tap all results' weights side by side,
// and a row as whole accesses.
template <typename Spec>
struct NarrowWeights {
  static constexpr int kChannels = Spec::Input::kC;
  static constexpr int kResults = Spec::Output::kC;
  static constexpr int kWidth = Spec::kKernelW;
  static constexpr int kRow = (kResults * kWidth + 3) / 4 * 4;

  alignas(16) float taps[kChannels][Spec::kKernelH][kRow];

  // By all threads of the block.
  __device__ void Load(const typename Spec::Tensors& t) {
    constexpr int kFilter = Spec::kKernelH * kWidth;
    constexpr int kOfResult = kChannels * kFilter;
#pragma unroll 1
    for (int i = threadIdx.x; i < kOfResult * kResults; i += Spec::kThreads) {
      const int column = i % kWidth * kResults + i / kOfResult;
      const int row = i / kWidth % Spec::kKernelH;
      taps[i / kFilter % kChannels][row][column] =
          kiln::Load(t.weight, static_cast<typename Spec::Index>(i));
    }
  }
};

// One vector of sums for each of kRows rows of results, and each thread.
template <typename Spec, int kRows>
struct NarrowSums {
  static constexpr int kVector = Spec::kVector;
  static constexpr int kLanes = Spec::kThreads / Spec::kSlices;

  float sums[Spec::kSlices][kRows][kVector][kLanes];

  static __device__ int Lane() { return threadIdx.x % kLanes; }
  static __device__ int Slice() { return threadIdx.x / kLanes; }

  __device__ void Leave(int row, const float (&own)[kVector]) {
#pragma unroll
    for (int k = 0; k < kVector; ++k) sums[Slice()][row][k][Lane()] = own[k];
  }

  // Calls finish(row, sum of all slices) for the rows that are the thread's to
  // finish.
  template <int kUnroll, typename Finish>
  __device__ void ForEachRow(const Finish& finish) const {
#pragma unroll kUnroll
    for (int row = Slice(); row < kRows; row += Spec::kSlices) {
      float sum[kVector] = {};
#pragma unroll
      for (int slice = 0; slice < Spec::kSlices; ++slice) {
#pragma unroll
        for (int k = 0; k < kVector; ++k) sum[k] += sums[slice][row][k][Lane()];
      }
      finish(row, sum);
    }
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_NARROW_BLOCK_CUH_
