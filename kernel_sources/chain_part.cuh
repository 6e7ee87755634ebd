// What kernels of several reductions over the same rows have in common: how
// threads share rows, and who writes the numbers of a row.
//
//   const kiln::ChainPart<Spec> part(t);
//   ... part.PositionOf(step) ...
//   kiln::WriteNumbers<Spec>(t, part, rows);
#ifndef KILN_KERNEL_SOURCES_CHAIN_PART_CUH_
#define KILN_KERNEL_SOURCES_CHAIN_PART_CUH_

#include "point.cuh"

namespace kiln {

// Names one of a Spec's reductions.
template <int kNumber>
struct Link {};

// Where one thread works. Threads without a row do again what the last one does
// but for writing, since all must take part in merging.
template <typename Spec>
struct ChainPart {
  using Index = typename Spec::Index;
  static constexpr bool kSideBySide = Spec::kPitch > 1;
  // Of a vector: elements of one row, and rows.
  static constexpr int kAlong = kSideBySide ? 1 : Spec::kVector;
  static constexpr int kRows = kSideBySide ? Spec::kVector : 1;
  static constexpr int kAbreast = Spec::kThreads / Spec::kLanes;
  static constexpr int kStride = Spec::kLanes * kAlong;
  static constexpr int kSlice =  // elements of a row that a block has
      static_cast<int>(Spec::kRowLength / Spec::kCluster);
  static constexpr int kSteps = (kSlice + kStride - 1) / kStride;
  static constexpr bool kHasWholeSteps = kSlice % kStride == 0;
  // Whether a row's elements are several runs of neighbours, of Spec::kRun
  // each, between which lie those of all other rows.
  static constexpr bool kHasRuns = Spec::kRun < Spec::kRowLength;

  Index outer;  // a row's position by the axes before those of its elements
  Index inner;  // and by those behind them
  Index row;    // the first of the thread's
  Index begin;  // of its first element, in memory
  int first;    // of its elements, in the row
  bool is_inside;
  bool is_aligned;  // the tensors are

  __device__ explicit ChainPart(const typename Spec::Tensors& t) {
    const Index block = BlockInMemory<Spec>();
    is_aligned = Spec::IsAligned(t);
    if constexpr (kSideBySide) {
      constexpr Index kStrips =
          (Spec::kPitch + kAbreast * kRows - 1) / (kAbreast * kRows);
      const Index at =
          (block % kStrips * kAbreast + threadIdx.x % kAbreast) * kRows;
      const Index column = min(at, Spec::kPitch - kRows);
      is_inside = at < Spec::kPitch;
      first = threadIdx.x / kAbreast;
      outer = block / kStrips;
      inner = column;
      row = outer * Spec::kPitch + column;
      begin = outer * Spec::kRowLength * Spec::kPitch + column;
    } else {
      const Index own = block / Spec::kCluster * kAbreast +
                        static_cast<Index>(threadIdx.x / Spec::kLanes);
      is_inside = own < Spec::kRows;
      first = threadIdx.x % Spec::kLanes * kAlong;
      row = min(own, Spec::kRows - 1);
      outer = row;
      inner = 0;
      begin = kHasRuns ? row * Spec::kRun
                       : row * Spec::kRowLength + rank() * kSlice;
    }
  }
  // Of the block, among those that share its rows.
  __device__ static int rank() { return blockIdx.x % Spec::kCluster; }
  // Of element `at` of the first row, of those that the block has.
  __device__ Index PositionIn(int at) const {
    if constexpr (kHasRuns) {
      const Index in_row = rank() * kSlice + at;
      const Index run = in_row / Spec::kRun;
      return begin + run * (Spec::kRows * Spec::kRun) +
             (in_row - run * Spec::kRun);
    }
    return begin + at * Spec::kPitch;
  }
  // Of the vector of one of the thread's steps.
  __device__ Index PositionOf(int step) const {
    return PositionIn(first + step * kStride);
  }
  __device__ Point<Index> PointOfStep(int step) const {
    return PointAt(PositionOf(step));
  }
  // The point at position `i` of the first row. Where rows are channels, what
  // is read for one is read once.
  __device__ Point<Index> PointAt(Index i) const {
    using Shape = typename Spec::Domain;
    Point<Index> point = PointOf<Shape>(i);
    if constexpr (kHasRuns && Spec::kRun == Shape::kH * Shape::kW &&
                  Spec::kRows == Shape::kC) {
      point.c = row;
    }
    return point;
  }
  // The point of element `at` of the first row, where a block has it whole.
  __device__ Point<Index> PointIn(int at) const {
    using Shape = typename Spec::Domain;
    if constexpr (kHasRuns) return PointAt(PositionIn(at));
    return {begin + at * Spec::kPitch,
            Coordinate<Shape::kC * Shape::kH * Shape::kW, Shape::kN>(at),
            Coordinate<Shape::kH * Shape::kW, Shape::kC>(at),
            Coordinate<Shape::kW, Shape::kH>(at), Coordinate<1, Shape::kW>(at)};
  }
  // By an axis of this extent, whose coordinates are kApart elements apart:
  // rows have whole axes to themselves, so that nothing else of the position
  // counts, but for the axis that they divide into groups.
  template <Index kApart, Index kExtent>
  __device__ Index Coordinate(Index at) const {
    constexpr Index kRow = Spec::kRowLength * Spec::kPitch;
    if constexpr (kApart >= kRow) {
      return outer / (kApart / kRow) % kExtent;
    } else if constexpr (kApart < Spec::kPitch) {
      return inner / kApart % kExtent;
    } else {
      const Index own = at / (kApart / Spec::kPitch);
      constexpr Index kGroup = kRow / kApart;
      if constexpr (kGroup > kExtent) {
        return own % kExtent;
      } else if constexpr (kGroup == kExtent) {
        return own;
      } else {
        return outer % (kExtent / kGroup) * kGroup + own;
      }
    }
  }
  // Steps of this thread before the end of its rows.
  __device__ int steps() const {
    return first >= kSlice ? 0 : (kSlice - first + kStride - 1) / kStride;
  }
};

// Writes what is computed of the numbers of the thread's rows alone.
template <typename Spec>
__device__ void WriteNumbers(const typename Spec::Tensors& t,
                             const ChainPart<Spec>& part,
                             const typename Spec::Statistics* rows) {
  if (part.first > 0 || part.rank() > 0) return;
#pragma unroll
  for (int row = 0; row < ChainPart<Spec>::kRows; ++row) {
    Spec::RowElement(t, PointOf<typename Spec::RowDomain>(part.row + row),
                     rows[row]);
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CHAIN_PART_CUH_
