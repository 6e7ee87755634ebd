// States of reducers merged across the lanes of a warp, in one order: all that
// get the result get the same bits.
//
//   kiln::MergeLanes<32>(&state);
//   kiln::MergeIntoFirstLane(32, &state);
#ifndef KILN_KERNEL_SOURCES_MERGE_LANES_CUH_
#define KILN_KERNEL_SOURCES_MERGE_LANES_CUH_

namespace kiln {

// Merges the states of `lanes` neighbours, a power of two, into that of the
// first: nobody has to choose which state comes first. Each lane has kCount
// states, apart from each other.
template <int kCount = 1, typename Reducer>
__device__ void MergeIntoFirstLane(int lanes, Reducer* states) {
  constexpr int kWords = sizeof(Reducer) / sizeof(float);
#pragma unroll 1
  for (int distance = 1; distance < lanes; distance *= 2) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      Reducer upper;
#pragma unroll
      for (int k = 0; k < kWords; ++k) {
        reinterpret_cast<float*>(&upper)[k] = __shfl_down_sync(
            0xffffffff, reinterpret_cast<const float*>(&states[i])[k],
            distance);
      }
      states[i].Merge(upper);
    }
  }
}

// Merges the states of kLanes neighbouring lanes, a power of two, into each of
// them.
template <int kLanes, typename Reducer>
__device__ void MergeLanes(Reducer* state) {
  constexpr int kWords = sizeof(Reducer) / sizeof(float);
  MergeIntoFirstLane(kLanes, state);
  // Word by word: a struct would go through memory.
#pragma unroll
  for (int k = 0; k < kWords; ++k) {
    float* word = reinterpret_cast<float*>(state) + k;
    *word = __shfl_sync(0xffffffff, *word, 0, kLanes);
  }
}

// The fewest lanes, a power of two, of which each has at most one of `count`
// states; 32 if there are more.
__device__ constexpr int LanesFor(int count) {
  int lanes = 1;
  while (lanes < count && lanes < 32) lanes *= 2;
  return lanes;
}

// The largest of lanes' values, whose order does not matter.
template <int kLanes>
__device__ float LargestOfLanes(float x) {
#pragma unroll
  for (int mask = 1; mask < kLanes; mask *= 2) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, mask));
  }
  return x;
}

// The sum over kLanes neighbouring lanes, of those that differ in the bits from
// kFirst on.
template <int kLanes, int kFirst = 1, typename T>
__device__ T SumOfLanes(T x) {
#pragma unroll
  for (int mask = kFirst; mask < kLanes; mask *= 2) {
    x += __shfl_xor_sync(0xffffffff, x, mask);
  }
  return x;
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_MERGE_LANES_CUH_
