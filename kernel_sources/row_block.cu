// Norms, softmax and what else is computed of a reduction over rows, in two
// touches: each block, or cluster of blocks, reads its rows, keeps them in
// shared memory, and writes the results.
//
//   row statistics = reducer over Spec::Read of the row's elements
//   outputs        = Spec::Element(element, its Spec::Read, statistics)
//
// A row is Spec::kRowLength neighbours in memory. Spec::kLanes threads of each
// of Spec::kCluster blocks work on it; a block holds kThreads / kLanes rows.
// Every thread keeps its own elements in places of its own (row_places.cuh), so
// that only the statistics are exchanged: in a warp by shuffles, in a block
// through shared memory, in a cluster through its distributed shared memory. No
// atomics; one fixed order.
//
// Softmax takes two passes over what is kept, so that each power is computed
// once: the largest value, then the sum of e^(x - largest). Of long rows of 16
// bits, which are kept as they are, powers are computed twice.
//
// Threads load kVector neighbours at once, in one access where the tensors are
// aligned to 16 bytes.
//
// Where few blocks fit on a multiprocessor, those that start together would all
// load, and then all compute. So the first of them begin one after another:
// kTurns of each multiprocessor, kTurnCycles apart.
#include "math.cuh"
#include "merge_block.cuh"
#include "reducers.cuh"
#include "row_places.cuh"
#include "row_segments.cuh"

#if __CUDA_ARCH__ >= 900
#include "merge_cluster.cuh"
#endif

namespace kiln {

// Where one thread works on its row.
template <typename Spec>
struct RowPart {
  using Index = typename Spec::Index;
  static constexpr Index kSlice =  // elements of each block of a cluster
      (Spec::kRowLength / Spec::kVector + Spec::kCluster - 1) / Spec::kCluster *
      Spec::kVector;
  static constexpr Index kStride = Spec::kLanes * Spec::kVector;
  static constexpr int kSteps =  // of a thread
      static_cast<int>((kSlice + kStride - 1) / kStride);
  // Whether all threads have as many elements, kAtOnce vectors at a time.
  static constexpr bool kIsWhole =
      Spec::kRowLength % (Spec::kCluster * kStride * Spec::kAtOnce) == 0;

  // Whether a row lies in a block's places in order.
  static constexpr bool kInOrder =
      Spec::kLanes == Spec::kThreads && Places<Spec>::kPart == Spec::kVector;
  static constexpr int kKept =  // elements of a block
      kInOrder ? static_cast<int>(kSlice)
               : kSteps * Spec::kVector * Spec::kThreads;

  Index row_begin;   // in memory
  Index begin, end;  // of the block's slice, in the row
  int lane;
  bool is_aligned;  // the tensors are

  __device__ RowPart(const typename Spec::Tensors& t, Index row) {
    is_aligned = Spec::IsAligned(t);
    row_begin = row * Spec::kRowLength;
    begin = static_cast<Index>(blockIdx.x % Spec::kCluster) * kSlice;
    end = min(begin + kSlice, Spec::kRowLength);
    lane = threadIdx.x % Spec::kLanes;
  }
};

// Of the first blocks, kTurnBlocks have each turn.
template <typename Spec>
__device__ void AwaitTurn() {
  if constexpr (Spec::kTurns > 1) {
    const unsigned turn = blockIdx.x / Spec::kTurnBlocks;
    if (turn >= Spec::kTurns) return;
    const unsigned cycles = turn * Spec::kTurnCycles;
    const auto begin = static_cast<unsigned>(clock());
    // Not for ever, where clocks stand still.
#pragma unroll 1
    for (unsigned i = 0; i < cycles / 32; ++i) {
      if (static_cast<unsigned>(clock()) - begin >= cycles) return;
      __nanosleep(50);
    }
  }
}

// Starts the copies of the thread's elements, a group for each kAtOnce places.
template <typename Spec>
__device__ void CopyRow(const typename Spec::Tensors& t,
                        const RowPart<Spec>& part, const Places<Spec>& places) {
  using Index = typename Spec::Index;
  Index at = part.begin + part.lane * Spec::kVector;
#pragma unroll 1
  for (int step = 0; step < RowPart<Spec>::kSteps; step += Spec::kAtOnce) {
#pragma unroll
    for (int k = 0; k < Spec::kAtOnce; ++k) {
      if (at < part.end) {
        places.Begin(Spec::Source(t), part.row_begin + at, part.is_aligned,
                     step + k);
      }
      at += RowPart<Spec>::kStride;
    }
    CommitCopies();
  }
}

// Takes the thread's elements, kAtOnce vectors at a time, and keeps them.
template <typename Spec, typename Reducer>
__device__ void TakeRow(const typename Spec::Tensors& t,
                        const RowPart<Spec>& part, const Places<Spec>& places,
                        Reducer* state) {
  using Index = typename Spec::Index;
  constexpr int kVector = Spec::kVector;
  constexpr int kAtOnce = Spec::kAtOnce;
  constexpr int kSteps = RowPart<Spec>::kSteps;
  constexpr Index kStride = RowPart<Spec>::kStride;
  if constexpr (Spec::kCopied) CopyRow<Spec>(t, part, places);
#pragma unroll 1
  for (int step = 0; step < kSteps; step += kAtOnce) {
    const Index first = part.begin + step * kStride + part.lane * kVector;
    // One group of this thread has been begun, or is empty, for each step.
    if constexpr (Spec::kCopied) WaitForCopies<(kSteps - 1) / kAtOnce>();
    float x[kAtOnce * kVector];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      // Past its end, a row's last vector stands in: no branch delays a load.
      const Index at = min(first + k * kStride, Spec::kRowLength - kVector);
      if (Spec::kCopied && first + k * kStride >= part.end) continue;
      ReadVector<Spec>(t, places, step + k, part.row_begin + at,
                       part.is_aligned, x + k * kVector);
    }
    if constexpr (Spec::kPutsRead) {
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (RowPart<Spec>::kIsWhole || first + k * kStride < part.end) {
          places.Put(step + k, x + k * kVector);
        }
      }
    }
    const bool all_inside =
        RowPart<Spec>::kIsWhole || first + (kAtOnce - 1) * kStride < part.end;
    if (all_inside) {
      Take(state, x);
    } else if constexpr (kAtOnce > 1) {
      TakeFirst<kVector>((part.end - first + kStride - 1) / kStride, x, state);
    }
    if constexpr (Spec::kCopied) CommitCopies();
  }
}

// The sum of e^(x - largest) over the thread's elements, which it keeps in
// their stead where Spec::kKeepsPowers.
template <typename Spec>
__device__ void TakePowers(const RowPart<Spec>& part,
                           const Places<Spec>& places, float largest,
                           Sum* sum) {
  using Index = typename Spec::Index;
  Index at = part.begin + part.lane * Spec::kVector;
#pragma unroll 1
  for (int step = 0; at < part.end; at += RowPart<Spec>::kStride, ++step) {
    Vector<float, Spec::kVector> x;
    places.Get(step, &x);
#pragma unroll
    for (int k = 0; k < Spec::kVector; ++k) {
      x.elements[k] = Exp(x.elements[k] - largest);
    }
    sum->Add(SumOf(x.elements));
    if constexpr (Spec::kKeepsPowers) places.Put(step, x.elements);
  }
}

// Merges the states of all that work on a row, into each.
template <typename Spec, typename Reducer>
__device__ void MergeRow(int lane, Reducer* state) {
  MergeBlock<Spec::kThreads, Spec::kLanes>(lane, state);
#if __CUDA_ARCH__ >= 900
  if constexpr (Spec::kCluster > 1) MergeCluster<Spec::kCluster>(0, state);
#endif
}

template <typename Spec>
__device__ typename Spec::Statistics CountRow(const typename Spec::Tensors& t,
                                              const RowPart<Spec>& part,
                                              const Places<Spec>& places) {
  typename Spec::Reducer state;
  if constexpr (Spec::kTwoPasses) {
    Largest largest;
    TakeRow<Spec>(t, part, places, &largest);
    MergeRow<Spec>(part.lane, &largest);
#if __CUDA_ARCH__ >= 900
    if constexpr (Spec::kCluster > 1) ptx::ClusterWait();
#endif
    state.largest = largest.value;
    TakePowers<Spec>(part, places, largest.value, &state.scaled);
    MergeRow<Spec>(part.lane, &state.scaled);
  } else {
    TakeRow<Spec>(t, part, places, &state);
    MergeRow<Spec>(part.lane, &state);
  }
  return Spec::Finish(state);
}

template <typename Spec>
__device__ void WriteRow(const typename Spec::Tensors& t,
                         const RowPart<Spec>& part, const Places<Spec>& places,
                         const typename Spec::Statistics& statistics) {
  using Index = typename Spec::Index;
  Index at = part.begin + part.lane * Spec::kVector;
#pragma unroll 1
  for (int step = 0; at < part.end; at += RowPart<Spec>::kStride, ++step) {
    FinishVector<Spec, false>(t, places, step, part.row_begin + at,
                              part.is_aligned, &statistics);
  }
}

template <typename Spec>
__device__ void KeepRows(const typename Spec::Tensors& t,
                         const Places<Spec>& places) {
  using Index = typename Spec::Index;
  constexpr int kRowsPerBlock = Spec::kThreads / Spec::kLanes;
  const Index row = static_cast<Index>(BlockInMemory<Spec>() / Spec::kCluster) *
                        kRowsPerBlock +
                    static_cast<Index>(threadIdx.x / Spec::kLanes);
  // Threads without a row do the last one's work but for the writing, since
  // all must meet at the barriers.
  const RowPart<Spec> part(t, min(row, Spec::kRows - 1));
  AwaitTurn<Spec>();
  const typename Spec::Statistics statistics = CountRow<Spec>(t, part, places);
  if constexpr (Spec::kHasTail) {
    ReduceSegments<Spec>(t, part.row_begin + part.begin, part.is_aligned,
                         (part.end - part.begin) / Spec::kSegment,
                         places.memory, statistics);
  } else if (row < Spec::kRows) {
    WriteRow<Spec>(t, part, places, statistics);
  }
#if __CUDA_ARCH__ >= 900
  if constexpr (Spec::kCluster > 1) ptx::ClusterWait();
#endif
}

template <typename Spec>
__device__ void RowBlock(const typename Spec::Tensors& t) {
  static_assert(Spec::kThreads % Spec::kLanes == 0 &&
                    (Spec::kLanes & (Spec::kLanes - 1)) == 0,
                "The lanes of a row are a power of two.");
  static_assert(Spec::kCluster == 1 || Spec::kLanes == Spec::kThreads,
                "Blocks of a cluster work on one row.");
  static_assert(Spec::kRowLength % Spec::kVector == 0,
                "Vectors must not cross the end of a row.");
  static_assert(!Spec::kHasTail || RowPart<Spec>::kInOrder,
                "Segments are read where the row lies in order.");
  constexpr int kKept = RowPart<Spec>::kKept;
  if constexpr (Spec::kDynamicShared) {
    extern __shared__ float4 dynamic_shared[];
    KeepRows<Spec>(t, {reinterpret_cast<typename Spec::Kept*>(dynamic_shared)});
  } else {
    alignas(16) __shared__ typename Spec::Kept static_shared[kKept];
    KeepRows<Spec>(t, {static_shared});
  }
}

}  // namespace kiln
