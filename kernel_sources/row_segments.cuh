// Where nothing but a reduction reads the results of a row: each segment of
// Spec::kSegment neighbours is one output of it, and nothing else is written.
//
//   output = Spec::Element(SegmentReducer over Spec::Value(element, its
//                          Spec::Read, statistics of the row))
//
// Spec::kSegmentLanes threads share a segment. They read what all threads have
// kept: one row, or a cluster block's part of one, lies in the places in order.
#ifndef KILN_KERNEL_SOURCES_ROW_SEGMENTS_CUH_
#define KILN_KERNEL_SOURCES_ROW_SEGMENTS_CUH_

#include "merge_block.cuh"
#include "reducers.cuh"
#include "row_places.cuh"

namespace kiln {

// A sum of few values is taken as one: they are of one size.
template <int kCount, typename Reducer>
__device__ void TakeVector(Reducer* state, const float (&x)[kCount]) {
  if constexpr (__is_base_of(Sum, Reducer)) {
    state->Add(SumOf(x));
  } else {
    Take(state, x);
  }
}

// The point of element k of the segment that begins at `start`. Where that is
// an image, its points share what is known of their channel.
template <typename Spec>
__device__ Point<typename Spec::Index> PointInSegment(
    const Point<typename Spec::Index>& start, int k) {
  using Domain = typename Spec::Domain;
  using Index = typename Spec::Index;
  if constexpr (Domain::kH * Domain::kW == Spec::kSegment) {
    const Index place = k;
    return {start.i + place, start.n, start.c, place / Domain::kW,
            place % Domain::kW};
  } else {
    return PointOf<Domain>(start.i + k);
  }
}

// Spec::Value of the neighbours from `first` on, the part of a row that lies
// at `kept`.
template <typename Spec>
__device__ void ValuesOf(const typename Spec::Tensors& t,
                         const Point<typename Spec::Index>& first,
                         bool is_aligned, const typename Spec::Kept* kept,
                         const typename Spec::Statistics& statistics,
                         float (&values)[Spec::kSegmentVector]) {
  using Domain = typename Spec::Domain;
  constexpr int kCount = Spec::kSegmentVector;
  typename Spec::template Held<kCount> held;
  Vector<typename Spec::Kept, kCount> own;
  Fetch(kept, 0, true, &own);
  float x[kCount];
  RecallVector<Spec>(t, own, first, is_aligned, &held, x);
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    values[k] = Spec::Value(held, VectorPointOf<Domain, kCount>(first, k), x[k],
                            statistics);
  }
}

template <typename Spec>
__device__ void ReduceSegments(const typename Spec::Tensors& t,
                               typename Spec::Index begin, bool is_aligned,
                               int segments, const typename Spec::Kept* kept,
                               const typename Spec::Statistics& statistics) {
  constexpr int kLanes = Spec::kSegmentLanes;
  constexpr int kVector = Spec::kSegmentVector;
  constexpr int kAtOnce = Spec::kThreads / kLanes;  // segments
  const int lane = threadIdx.x % kLanes;
  // What all threads have kept is there.
  __syncthreads();
#pragma unroll 1
  for (int base = 0; base < segments; base += kAtOnce) {
    const int segment = base + threadIdx.x / kLanes;
    typename Spec::SegmentReducer state;
    const int end = segment < segments ? Spec::kSegment : 0;
    const auto start =
        PointOf<typename Spec::Domain>(begin + segment * Spec::kSegment);
#pragma unroll 1
    for (int k = lane * kVector; k < end; k += kLanes * kVector) {
      float values[kVector];
      ValuesOf<Spec>(t, PointInSegment<Spec>(start, k), is_aligned,
                     kept + segment * Spec::kSegment + k, statistics, values);
      TakeVector(&state, values);
    }
    MergeBlock<Spec::kThreads, kLanes>(lane, &state);
    if (lane == 0 && segment < segments) {
      Spec::Element(
          t,
          PointOf<typename Spec::TailOutput>(begin / Spec::kSegment + segment),
          state);
    }
    // One round where warps share a segment: they merge in the same memory.
    if constexpr (kLanes > 32) return;
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_ROW_SEGMENTS_CUH_
