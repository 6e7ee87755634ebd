// States of reducers merged across neighbouring threads of a block.
//
//   kiln::MergeBlock<512, 256>(threadIdx.x % 256, &state);
#ifndef KILN_KERNEL_SOURCES_MERGE_BLOCK_CUH_
#define KILN_KERNEL_SOURCES_MERGE_BLOCK_CUH_

#include "merge_lanes.cuh"

namespace kiln {

// Reducers have constructors, which variables in shared memory must not have.
template <typename Reducer, int kCount>
struct StatesMemory {
  float words[kCount * sizeof(Reducer) / sizeof(float)];
  __device__ Reducer& operator[](int i) {
    return reinterpret_cast<Reducer*>(words)[i];
  }
};

// Merges the states of kLanes neighbouring threads, a power of two, into each.
// All kThreads of the block must call it, once for each Reducer where kLanes
// is more than a warp.
template <int kThreads, int kLanes, typename Reducer>
__device__ void MergeBlock(int lane, Reducer* state) {
  if constexpr (kLanes <= 32) {
    MergeLanes<kLanes>(state);
  } else {
    constexpr int kWarps = kLanes / 32;
    static_assert(kWarps <= 32, "One warp merges those of all.");
    __shared__ StatesMemory<Reducer, kThreads / 32> states;
    // A loop, since the code of a merge is long: within warps, then of warps.
#pragma unroll 1
    for (int round = 0; round < 2; ++round) {
      if (round == 1) {
        const int warp = threadIdx.x / 32;
        if (lane % 32 == 0) states[warp] = *state;
        // Every warp of the row has written its state.
        __syncthreads();
        *state = Reducer();
        if (lane % 32 < kWarps) {
          *state = states[warp / kWarps * kWarps + lane % 32];
        }
      }
      MergeLanes<32>(state);
    }
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_MERGE_BLOCK_CUH_
