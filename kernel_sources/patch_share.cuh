// How kThreads threads share kSlices planes of kPatch positions: each has every
// kStep-th run of kTogether positions, so that its coordinates are found once,
// in kEach planes. Where positions are few, sets of threads have planes of
// their own, and a thread that has none begins behind all, at kNone.
#ifndef KILN_KERNEL_SOURCES_PATCH_SHARE_CUH_
#define KILN_KERNEL_SOURCES_PATCH_SHARE_CUH_

namespace kiln {

template <int kPatch, int kThreads, int kTogether, int kSlices,
          int kNone = kPatch>
struct PatchShare {
  static constexpr int kRuns =
      ((kPatch + kTogether - 1) / kTogether + 31) / 32 * 32;
  static constexpr int kFitting = kRuns < kThreads ? kThreads / kRuns : 1;
  static constexpr int kSets = kFitting < kSlices ? kFitting : kSlices;
  static constexpr int kEach = (kSlices + kSets - 1) / kSets;
  static constexpr int kStep = (kSets > 1 ? kRuns : kThreads) * kTogether;

  // The first position of `thread`.
  static __device__ int First(int thread) {
    if (kSets == 1) return thread * kTogether;
    return thread < kSets * kRuns ? thread % kRuns * kTogether : kNone;
  }
  // The `i`-th plane of `thread`, and whether there is one.
  static __device__ int Slice(int thread, int i) {
    return (kSets == 1 ? 0 : thread / kRuns) + i * kSets;
  }
  static __device__ bool HasSlice(int slice) {
    return kEach * kSets == kSlices || slice < kSlices;
  }
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_PATCH_SHARE_CUH_
