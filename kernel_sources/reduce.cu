// output = reducer over some axes of the input: sums, extrema, logsumexp, the
// statistics of group_norm and of softmax.
//
// The input is seen as K0 x R0 x K1 x R1 x K2, where K axes are kept and R axes
// reduced: neighbouring axes of one kind are merged, so five are enough for any
// choice among four. Spec::kVector neighbours in memory are one access:
//
//   rows (Spec::kRows: the innermost axis is reduced)  neighbours are steps of
//     one output, whose Spec::kLanes threads are neighbours too.
//   columns  neighbours are outputs; a thread has the states of all of them.
//     Threads next to each other take the next outputs; Spec::kLanes rows of
//     threads share the steps.
//
// Where the outputs are too few to fill the device, Spec::kSplits blocks share
// one: Reduce leaves their states in t.partials, and MergeSplits finishes.
//
// Spec::Read gives an input element, computed from whatever lies in memory;
// Spec::Element receives the merged state. No atomics; one fixed order.
#include "math.cuh"
#include "merge_columns.cuh"
#include "merge_lanes.cuh"
#include "point.cuh"
#include "reducers.cuh"
#include "storage_types.cuh"
#include "vectors.cuh"

namespace kiln {

template <typename View>
constexpr long long kNumOutputs =
    static_cast<long long>(View::kKept0) * View::kKept1* View::kKept2;

template <typename View>
constexpr long long kNumSteps =
    static_cast<long long>(View::kReduced0) * View::kReduced1;

// Where the input element of step `step` of output `output` lies.
template <typename View, typename Index>
__device__ Index PositionOf(Index output, Index step) {
  const Index k2 = output % View::kKept2;
  const Index k1 = output / View::kKept2 % View::kKept1;
  const Index k0 = output / View::kKept2 / View::kKept1;
  const Index r1 = step % View::kReduced1;
  const Index r0 = step / View::kReduced1;
  const Index row = (k0 * View::kReduced0 + r0) * View::kKept1 + k1;
  return (row * View::kReduced1 + r1) * View::kKept2 + k2;
}

// Where the element lies that is step `step` of output `output`. Of an image it
// has the output's channel: what is read for that is read once for all steps.
template <typename Spec, typename Index>
__device__ Point<Index> PointOfStep(Index output, Index step) {
  using Input = typename Spec::Input;
  using View = typename Spec::View;
  Point<Index> point = PointOf<Input>(PositionOf<View>(output, step));
  if constexpr (View::kReduced0 == Input::kH * Input::kW &&
                View::kKept0 == Input::kN * Input::kC) {
    point.n = output / Input::kC;
    point.c = output % Input::kC;
  }
  return point;
}

// Whether a thread may load its Spec::kVector neighbours as one.
template <typename Spec>
__device__ bool AreLoadsWhole(const typename Spec::Tensors& t) {
  if constexpr (Spec::kVector > 1) {
    return Spec::IsAligned(t);
  } else {
    return true;
  }
}

// The Spec::kVector elements from each of kAtOnce points on, all of which are
// in flight before the first is used: one choice of the way for all.
template <typename Spec, int kAtOnce, typename PointOfAccess>
__device__ void ReadVectors(const typename Spec::Tensors& t, bool is_aligned,
                            const PointOfAccess& point,
                            float (&x)[kAtOnce * Spec::kVector]) {
  using Input = typename Spec::Input;
  constexpr int kCount = Spec::kVector;
  if constexpr (kCount == 1) {
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      x[k] = Spec::Read(t, point(k));
    }
  } else {
    typename Spec::template Held<kCount> held[kAtOnce];
    const auto fetch = [&](bool is_whole) {
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        Spec::FetchHeld(t, point(k), is_whole, &held[k]);
      }
    };
    if (is_aligned) {
      fetch(true);
    } else {
      fetch(false);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const auto first = point(k);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        x[k * kCount + j] =
            Spec::Read(held[k], VectorPointOf<Input, kCount>(first, j));
      }
    }
  }
}

// Steps first, first + kStride, ... below end of one output, kAtOnce vectors
// at a time: all of them are in flight before the first is used.
template <typename Spec, typename Index>
__device__ void TakeSteps(const typename Spec::Tensors& t, Index output,
                          Index first, Index end,
                          typename Spec::Reducer* state) {
  using View = typename Spec::View;
  constexpr int kCount = Spec::kVector;
  constexpr int kAtOnce = Spec::kAtOnce;
  constexpr int kStride = Spec::kLanes * kCount;
  constexpr long long kTaken = kAtOnce * kStride;
  constexpr bool kIsWhole = kNumSteps<View> % (kTaken * Spec::kSplits) == 0;
  static_assert(Spec::kSplits == 1 || Spec::kLanes % 8 == 0,
                "Parts of whole accesses are whole lines.");
  const bool is_aligned = AreLoadsWhole<Spec>(t);
#pragma unroll 1
  for (Index step = first; step < end; step += kAtOnce * kStride) {
    float x[kAtOnce * kCount];
    const auto point = [&](int k) {
      // Past the end, the last vector stands in: no branch delays a load.
      const Index inside =
          kIsWhole ? step + k * kStride : min(step + k * kStride, end - kCount);
      return PointOfStep<Spec>(output, inside);
    };
    ReadVectors<Spec, kAtOnce>(t, is_aligned, point, x);
    const bool all_inside = kIsWhole || (!kHasNeutral<typename Spec::Reducer> &&
                                         step + (kAtOnce - 1) * kStride < end);
    if (all_inside) {
      Take(state, x);
    } else {
      TakeFirst<kCount>((end - step + kStride - 1) / kStride, x, state);
    }
  }
}

// The same for neighbouring outputs, one element each.
template <typename Spec, typename Index>
__device__ void TakeColumns(const typename Spec::Tensors& t, Index output,
                            Index first, Index end,
                            typename Spec::Reducer* states) {
  using View = typename Spec::View;
  constexpr int kCount = Spec::kVector;
  constexpr int kAtOnce = Spec::kAtOnce;
  constexpr int kStride = Spec::kLanes;
  constexpr bool kIsWhole =
      Spec::kSplits == 1 && kNumSteps<View> % (kAtOnce * kStride) == 0;
  static_assert(kIsWhole || kHasNeutral<typename Spec::Reducer>,
                "What stands past the end must change nothing.");
  const bool is_aligned = AreLoadsWhole<Spec>(t);
#pragma unroll 1
  for (Index step = first; step < end; step += kAtOnce * kStride) {
    float x[kAtOnce * kCount];
    const auto point = [&](int k) {
      const Index inside =
          kIsWhole ? step + k * kStride : min(step + k * kStride, end - 1);
      return PointOfStep<Spec>(output, inside);
    };
    ReadVectors<Spec, kAtOnce>(t, is_aligned, point, x);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      float column[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) column[k] = x[k * kCount + j];
      if (kIsWhole) {
        Take(&states[j], column);
      } else {
        TakeFirst<1>((end - step + kStride - 1) / kStride, column, &states[j]);
      }
    }
  }
}

// The state of the lane whose number differs in the bits of `mask`.
template <typename Reducer>
__device__ Reducer OfLane(const Reducer& state, int mask) {
  Reducer other;
  const float* from = reinterpret_cast<const float*>(&state);
  float* to = reinterpret_cast<float*>(&other);
#pragma unroll
  for (int k = 0; k < static_cast<int>(sizeof(Reducer) / sizeof(float)); ++k) {
    to[k] = __shfl_xor_sync(0xffffffff, from[k], mask);
  }
  return other;
}

// Merges the states of kLanes neighbouring threads of a warp into that of the
// first. The tree is a loop: its code is long, and its time short. Powers are
// brought to one scale first, which takes one more power instead of two for
// each merge.
template <int kLanes, typename Reducer>
__device__ void MergeWarp(Reducer* state) {
  if constexpr (kHasScale<Reducer>) {
    state->RaiseTo(LargestOfLanes<kLanes>(state->largest));
    MergeWarp<kLanes>(&state->scaled);
  } else {
#pragma unroll 1
    for (int mask = 1; mask < kLanes; mask *= 2) {
      state->Merge(OfLane(*state, mask));
    }
  }
}

// Memory of a block for states. These have constructors, which variables in
// shared memory must not have.
template <typename Reducer, int kCount>
__device__ Reducer* SharedStates() {
  __shared__ float memory[kCount * sizeof(Reducer) / sizeof(float)];
  return reinterpret_cast<Reducer*>(memory);
}

// Merges the states of kLanes neighbouring threads into that of the first. All
// threads of the block must call it.
template <int kThreads, int kLanes, typename Reducer>
__device__ void MergeRow(Reducer* state) {
  MergeWarp<(kLanes < 32 ? kLanes : 32)>(state);
  if constexpr (kLanes > 32) {
    Reducer* states = SharedStates<Reducer, kThreads / 32>();
    if (threadIdx.x % 32 == 0) states[threadIdx.x / 32] = *state;
    // All warps have written; the first thread of each output reads.
    __syncthreads();
    if (threadIdx.x % kLanes != 0) return;
#pragma unroll 1
    for (int warp = 1; warp < kLanes / 32; ++warp) {
      state->Merge(states[threadIdx.x / 32 + warp]);
    }
  }
}

// What becomes of the state of a whole block's share of an output.
template <typename Spec, typename Index>
__device__ void Finish(const typename Spec::Tensors& t, Index output,
                       const typename Spec::Reducer& state) {
  if constexpr (Spec::kSplits > 1) {
    t.partials[output * Spec::kSplits + blockIdx.y] = state;
  } else {
    Spec::Element(t, PointOf<typename Spec::Output>(output), state);
  }
}

template <typename Spec, typename Index>
__device__ void ReduceRows(const typename Spec::Tensors& t, Index begin,
                           Index end) {
  constexpr int kOutputsPerBlock = Spec::kThreads / Spec::kLanes;
  const Index output =
      static_cast<Index>(BlockInMemory<Spec>()) * kOutputsPerBlock +
      static_cast<Index>(threadIdx.x / Spec::kLanes);
  const bool inside = output < kNumOutputs<typename Spec::View>;
  const int lane = threadIdx.x % Spec::kLanes;

  typename Spec::Reducer state;
  if (inside) {
    TakeSteps<Spec, Index>(t, output, begin + lane * Spec::kVector, end,
                           &state);
  }
  MergeRow<Spec::kThreads, Spec::kLanes>(&state);
  if (inside && lane == 0) Finish<Spec>(t, output, state);
}

template <typename Spec, typename Index>
__device__ void ReduceColumns(const typename Spec::Tensors& t, Index begin,
                              Index end) {
  using Reducer = typename Spec::Reducer;
  constexpr Index kOutputs = kNumOutputs<typename Spec::View>;
  constexpr int kVector = Spec::kVector;
  constexpr int kColumns = Spec::kThreads / Spec::kLanes;  // of threads
  const int column = threadIdx.x % kColumns;
  const int lane = threadIdx.x / kColumns;
  const Index first_output =
      static_cast<Index>(BlockInMemory<Spec>()) * (kColumns * kVector);
  const Index output = first_output + column * kVector;

  Reducer states[kVector];
  if (output < kOutputs) {
    TakeColumns<Spec, Index>(t, output, begin + lane, end, states);
  }
  Reducer* all = SharedStates<Reducer, Spec::kThreads * kVector>();
  GatherColumns<Spec::kThreads, Spec::kLanes, kVector>(all, states);
#pragma unroll 1
  for (int i = threadIdx.x; i < kColumns * kVector; i += Spec::kThreads) {
    if (first_output + i >= kOutputs) return;
    Finish<Spec, Index>(t, first_output + i, all[i]);
  }
}

template <typename Spec>
__device__ void Reduce(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  using View = typename Spec::View;
  constexpr Index kSteps = kNumSteps<View>;
  // A multiple of the vector, so that every block begins with a whole one; of
  // rows, with a whole line.
  constexpr Index kUnit = Spec::kVector * (Spec::kRows ? 8 : 1);
  constexpr Index kSplitUnits =
      (kSteps + Spec::kSplits * kUnit - 1) / (Spec::kSplits * kUnit);
  constexpr Index kSplitSteps = kSplitUnits * kUnit;
  static_assert(Spec::kThreads % Spec::kLanes == 0 &&
                    (Spec::kLanes & (Spec::kLanes - 1)) == 0,
                "Lanes are a power of two that divides the block.");
  static_assert(
      kNumOutputs<View> * kNumSteps<View> == kNumElements<typename Spec::Input>,
      "The view must have as many elements as the input.");

  const Index begin = static_cast<Index>(blockIdx.y) * kSplitSteps;
  const Index end = min(begin + kSplitSteps, kSteps);
  if constexpr (Spec::kRows) {
    ReduceRows<Spec, Index>(t, begin, end);
  } else {
    ReduceColumns<Spec, Index>(t, begin, end);
  }
}

// Second kernel where kSplits > 1: Spec::kMergeLanes neighbouring threads for
// each output, of which each has its states in flight before it merges them.
template <typename Spec>
__device__ void MergeSplits(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  using Reducer = typename Spec::Reducer;
  constexpr int kLanes = Spec::kMergeLanes;
  constexpr int kStates = (Spec::kSplits + kLanes - 1) / kLanes;
  const Index output = GridStart<Index>() / kLanes;
  const int lane = threadIdx.x % kLanes;
  const bool inside = output < kNumOutputs<typename Spec::View>;

  Reducer states[kStates];
#pragma unroll
  for (int k = 0; k < kStates; ++k) {
    const int split = lane + k * kLanes;
    if (inside && split < Spec::kSplits) {
      states[k] = t.partials[output * Spec::kSplits + split];
    }
  }
#pragma unroll
  for (int k = 1; k < kStates; ++k) states[0].Merge(states[k]);
  MergeRow<Spec::kMergeThreads, kLanes>(&states[0]);
  if (!inside || lane != 0) return;
  Spec::Element(t, PointOf<typename Spec::Output>(output), states[0]);
}

}  // namespace kiln
