// Depthwise convolution of stride and dilation 1 by walks: a thread goes down
// kVector columns of one channel, from one row of outputs to the next, kTileH
// of them. It adds each row of the input to the sums of all kKernelH rows of
// outputs that it touches. The sums of the uppermost are then complete, and
// those of the others take a place less: the first product of a row reads the
// sum from one place and leaves it in the other, so that this costs no
// instruction and the code is that of a single row. Above and below the image
// nothing is added.
//
// Memory answers late, and a row is little: so each thread copies its own
// vector of the row that comes kRowsAhead later into shared memory, and finds
// its neighbours' there. A block has whole rows of several planes, and the same
// rows of all of them.
//
//   kiln::WalkAll<Spec>(t, is_aligned);
#ifndef KILN_KERNEL_SOURCES_DEPTHWISE_WALK_CUH_
#define KILN_KERNEL_SOURCES_DEPTHWISE_WALK_CUH_

#include "async_copy.cuh"
#include "depthwise_ring.cuh"
#include "depthwise_taps.cuh"
#include "finish_vector.cuh"
#include "opaque.cuh"
#include "point.cuh"

namespace kiln {

// The walk of a thread.
template <typename Spec>
class DepthwiseWalk {
 public:
  using Index = typename Spec::Index;
  using Tensors = typename Spec::Tensors;
  using Ring = WalkRing<Spec>;
  using Row = WalkRow<Spec>;

  // Through the planes from `first_plane` on, from row `first_h` of outputs on.
  __device__ DepthwiseWalk(Index first_plane, Index first_h, bool is_aligned,
                           Ring* ring)
      : plane_(min(static_cast<int>(threadIdx.x) / Row::kVectors,
                   Row::kPlanes - 1)),
        begin_(first_h),
        end_(min(first_h + Spec::kTileH, static_cast<Index>(Output::kH))),
        h_(max(first_h - Spec::kPaddingH, Index{0})),
        end_h_(min(end_ + kBelow, static_cast<Index>(Input::kH))),
        is_aligned_(Opaque(is_aligned)) {
    const int vector = static_cast<int>(threadIdx.x) % Row::kVectors;
    const Index w = vector * Spec::kVector;
    const Index plane = first_plane + plane_;
    const bool is_there = threadIdx.x < Row::kPlanes * Row::kVectors &&
                          plane < Output::kN * Output::kC;
    copies_ = is_there && w < Input::kW;
    puts_ = is_there && w < Output::kW;
    at_ = PointAt<Output, Index>(plane / Output::kC, plane % Output::kC,
                                 h_ - kBelow, w);
    from_ = (PlaneOf<Spec>(at_) * Input::kH + h_) * Input::kW + w;
    own_ = ring->elements + Row::PlaceOf(plane_, vector);
  }

  // Begins to copy the first rows.
  __device__ void Begin(const Tensors& t) {
#pragma unroll
    for (int k = 0; k < kAhead; ++k) Copy(t, k, k * Ring::kSlot);
  }

  // The outputs, where zeros may stand in for the padding.
  __device__ void Go(const Tensors& t, const WalkFilters<Spec>& filters) {
#pragma unroll
    for (int k = 0; k < kRows * Spec::kKernelW; ++k) {
      filter_[k] = filters.taps[plane_ * kRows * Spec::kKernelW + k];
    }
    int slot = 0, free = Ring::kAll - Ring::kSlot;
#pragma unroll 1
    for (; h_ < end_h_; ++h_) {
      WaitForCopies<kAhead - 1>();
      __syncthreads();  // All vectors are there, and nobody reads the row
                        // before.
      Copy(t, kAhead, free);
      typename Spec::template Held<Spec::kVector> held;
      const bool finishes = puts_ && at_.h >= begin_;
      if (finishes) Spec::FetchHeld(t, at_, is_aligned_, &held);
      float row[Row::kColumns];
      Row::Read(own_ + slot, row);
      Add(row);
      if (finishes) FinishHeld<Spec>(t, at_, is_aligned_, sums_[0], &held);
      GoDown();
      free = slot;
      slot = Ring::SlotAfter(slot);
    }
#pragma unroll 1
    while (at_.h < end_) {  // whose last rows are below the image
      Shift();
      if (puts_ && at_.h >= begin_) Finish(t);
      GoDown();
    }
  }

  // The outputs, of which each product is made only where it should be.
  __device__ void GoWithCare(const Tensors& t) {
    WaitForCopies<0>();  // or they would come among those of the next walk
    at_.i += (begin_ - at_.h) * Output::kW;
    at_.h = begin_;
#pragma unroll 1
    for (; puts_ && at_.h < end_; GoDown()) {
      float sums[1][Spec::kVector];
      SumWithCare<Spec>(t, at_, sums);
#pragma unroll
      for (int x = 0; x < Spec::kVector; ++x) sums_[0][x] = sums[0][x];
      Finish(t);
    }
  }

 private:
  using Input = typename Spec::Input;
  using Output = typename Spec::Output;
  using InputType = typename Spec::InputType;
  static constexpr int kRows = Spec::kKernelH;  // of sums
  static constexpr int kAhead = Spec::kRowsAhead;
  // The row of the input that completes one of outputs is so far below it.
  static constexpr int kBelow = kRows - 1 - Spec::kPaddingH;
  static_assert(kBelow >= 0, "Each output reaches its own row.");
  static_assert(Spec::kTileW == Spec::kVector, "A thread has one vector.");
  static_assert(Spec::kStrideH == 1 && Spec::kStrideW == 1 &&
                    Spec::kDilationH == 1 && Spec::kDilationW == 1,
                "A walk goes from each row to the next.");

  // Begins to copy the next row, which is `ahead` behind h_. A group of copies
  // for each row, even where there is none.
  __device__ void Copy(const Tensors& t, int ahead, int slot) {
    if (copies_ && h_ + ahead < end_h_) {
      BeginCopy<Spec::kVector>(t.input, from_, is_aligned_, own_ + slot);
    }
    from_ += Input::kW;
    CommitCopies();
  }

  // Adds the products of a row to the sums, which take a place less.
  __device__ void Add(const float (&row)[Row::kColumns]) {
#pragma unroll
    for (int kx = 0; kx < Spec::kKernelW; ++kx) {
#pragma unroll
      for (int y = 0; y < kRows; ++y) {
        const float tap = filter_[(kRows - 1 - y) * Spec::kKernelW + kx];
        const float* from = sums_[kx == 0 ? y + 1 : y];
#pragma unroll
        for (int x = 0; x < Spec::kVector; ++x) {
          sums_[y][x] = fmaf(row[x + kx], tap, from[x]);
        }
      }
    }
  }

  // Goes past a row outside of the image.
  __device__ void Shift() {
#pragma unroll
    for (int y = 0; y < kRows; ++y) {
#pragma unroll
      for (int x = 0; x < Spec::kVector; ++x) sums_[y][x] = sums_[y + 1][x];
    }
  }

  // What follows for the uppermost row of sums.
  __device__ void Finish(const Tensors& t) {
    FinishVector<Spec>(t, at_, is_aligned_, sums_[0]);
  }

  __device__ void GoDown() {
    at_.i += Output::kW;
    ++at_.h;
  }

  int plane_;          // of the block's
  Index begin_, end_;  // of the rows of outputs
  Index h_, end_h_;    // the row of the input that is added next
  bool is_aligned_;
  bool copies_, puts_;  // some threads have only one of both to do
  Point<Index> at_;     // the outputs that row h_ completes
  Index from_;          // what is copied next
  InputType* own_;      // its place in the ring's first slot
  float filter_[Spec::kKernelH * Spec::kKernelW];
  float sums_[kRows + 1][Spec::kVector] = {};  // the last stay zero
};

// All walks, in blocks of Spec::kThreads.
template <typename Spec>
__device__ void WalkAll(const typename Spec::Tensors& t, bool is_aligned) {
  using Index = typename Spec::Index;
  using Tiles = typename Spec::Tiles;
  constexpr Index kPlanes = WalkRow<Spec>::kPlanes;
  constexpr Index kBlocks =
      (Tiles::kN * Tiles::kC + kPlanes - 1) / kPlanes * Tiles::kH;
  __shared__ WalkRing<Spec> ring;
  __shared__ WalkFilters<Spec> filters;
  filters.Begin();
  ring.Clear();
#pragma unroll 1
  for (Index block = blockIdx.x; block < kBlocks; block += gridDim.x) {
    const Index first_plane = block / Tiles::kH * kPlanes;
    DepthwiseWalk<Spec> walk(first_plane, block % Tiles::kH * Spec::kTileH,
                             is_aligned, &ring);
    __syncthreads();  // Nobody clears places, or reads those of the block
                      // before.
    walk.Begin(t);
    filters.Load(t, first_plane);
    if (filters.are_finite) {
      walk.Go(t, filters);
    } else {
      walk.GoWithCare(t);
    }
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_DEPTHWISE_WALK_CUH_
