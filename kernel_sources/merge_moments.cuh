// Moments of parts whose counts are known before anything is merged: means and
// squares are plain sums of differences from one of the means. Merged one by
// one they take a quotient each, in a chain that blocks wait for.
//
//   const float count = kiln::SumOfLanes<32>(parts[0].count);
//   const kiln::Moments all = kiln::MergedMoments<32>(parts, count);
#ifndef KILN_KERNEL_SOURCES_MERGE_MOMENTS_CUH_
#define KILN_KERNEL_SOURCES_MERGE_MOMENTS_CUH_

#include "merge_lanes.cuh"
#include "reducers.cuh"

namespace kiln {

// The kParts of each of kLanes neighbouring lanes, a power of two, merged; the
// same in all of them. `count` values are behind all, some of them behind the
// first part of the first lane. What is behind a part of no values does not
// matter if it is finite. By all lanes of a warp.
template <int kLanes, int kParts>
__device__ Moments MergedMoments(const Moments (&parts)[kParts], float count) {
  // As exact as two passes: any mean is within a few deviations of theirs.
  const float pivot = __shfl_sync(~0u, parts[0].mean, 0, kLanes);
  const float share = Reciprocal(count);
  Moments all;
  float shift = 0.0f;
#pragma unroll
  for (int k = 0; k < kParts; ++k) {
    shift = fmaf(parts[k].mean - pivot, parts[k].count * share, shift);
  }
  shift = SumOfLanes<kLanes>(shift);
#pragma unroll
  for (int k = 0; k < kParts; ++k) {
    const float apart = parts[k].mean - pivot - shift;
    // In this order a part of no values adds none.
    all.m2 += fmaf(apart * parts[k].count, apart, parts[k].m2);
  }
  all.m2 = SumOfLanes<kLanes>(all.m2);
  all.mean = pivot + shift;
  all.count = count;
  return all;
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_MERGE_MOMENTS_CUH_
