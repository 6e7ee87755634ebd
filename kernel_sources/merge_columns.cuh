// States of rows that lie side by side merged across the threads of a block
// that share them: kLanes threads above each other have kVector states each.
//
//   kiln::MergeColumns<kThreads, kLanes, kVector>(memory, states);
//   kiln::GatherColumns<kThreads, kLanes, kVector>(all, states);
#ifndef KILN_KERNEL_SOURCES_MERGE_COLUMNS_CUH_
#define KILN_KERNEL_SOURCES_MERGE_COLUMNS_CUH_

namespace kiln {

// Merges the states of the lanes of each row, a power of two, into that of the
// first lane, in `all`: lanes of the upper half into those of the lower, again
// and again. Threads next to each other have the next rows. `all` is shared and
// has room for the states of all threads, which may read it afterwards, and
// write to it behind another barrier.
template <int kThreads, int kLanes, int kVector, typename State>
__device__ void GatherColumns(State* all, const State* states) {
  constexpr int kWidth = kThreads / kLanes * kVector;
  const int column = threadIdx.x % (kThreads / kLanes);
  const int lane = threadIdx.x / (kThreads / kLanes);
  State* own = all + column * kVector + lane * kWidth;
#pragma unroll
  for (int j = 0; j < kVector; ++j) own[j] = states[j];
#pragma unroll 1
  for (int half = kLanes / 2; half > 0; half /= 2) {
    // All lanes have written.
    __syncthreads();
#pragma unroll 1
    for (int i = threadIdx.x; i < half * kWidth; i += kThreads) {
      all[i].Merge(all[half * kWidth + i]);
    }
  }
  // The first lane's are those of all.
  __syncthreads();
}

// The same into the states of each lane; `memory` may be used again at once.
template <int kThreads, int kLanes, int kVector, typename State>
__device__ void MergeColumns(float* memory, State* states) {
  if constexpr (kLanes > 1) {
    State* all = reinterpret_cast<State*>(memory);
    GatherColumns<kThreads, kLanes, kVector>(all, states);
    const State* own = all + threadIdx.x % (kThreads / kLanes) * kVector;
#pragma unroll
    for (int j = 0; j < kVector; ++j) states[j] = own[j];
    // They have been read before the memory is used again.
    __syncthreads();
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_MERGE_COLUMNS_CUH_
