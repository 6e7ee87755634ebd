// output = reducer over some axes of the input: sums, extrema, logsumexp, the
// statistics of group_norm and of softmax.
//
// The input is seen as K0 x R0 x K1 x R1 x K2, where K axes are kept and R axes
// reduced: neighbouring axes of one kind are merged, so five are enough for any
// choice among four. An output is worked on by Spec::kLanes threads of one
// block, each taking every kLanes-th step; their states merge as a tree. Where
// the outputs are too few to fill the device, Spec::kSplits blocks share one:
// Reduce leaves their states in t.partials, and MergeSplits finishes.
//
// Spec::Read gives an input element, computed from whatever lies in memory;
// Spec::Element receives the merged state. No atomics; one fixed order.
#include "math.cuh"
#include "point.cuh"
#include "reducers.cuh"
#include "storage_types.cuh"

namespace kiln {

template <typename View>
constexpr long long kNumOutputs =
    static_cast<long long>(View::kKept0) * View::kKept1* View::kKept2;

template <typename View>
constexpr long long kNumSteps =
    static_cast<long long>(View::kReduced0) * View::kReduced1;

// The input element of step `step` of output `output`.
template <typename Spec, typename Index>
__device__ float ReadStep(const typename Spec::Tensors& t, Index output,
                          Index step) {
  using View = typename Spec::View;
  const Index k2 = output % View::kKept2;
  const Index k1 = output / View::kKept2 % View::kKept1;
  const Index k0 = output / View::kKept2 / View::kKept1;
  const Index r1 = step % View::kReduced1;
  const Index r0 = step / View::kReduced1;
  const Index row = (k0 * View::kReduced0 + r0) * View::kKept1 + k1;
  const Index i = (row * View::kReduced1 + r1) * View::kKept2 + k2;
  return Spec::Read(t, PointOf<typename Spec::Input>(i));
}

// The state of one thread: steps first, first + kLanes, ... below end.
template <typename Spec, typename Index>
__device__ typename Spec::Reducer ReduceSteps(const typename Spec::Tensors& t,
                                              Index output, Index first,
                                              Index end) {
  typename Spec::Reducer state;
  Index step = first;
  if constexpr (Spec::kFourAtOnce) {
#pragma unroll 1
    for (; step + 3 * Spec::kLanes < end; step += 4 * Spec::kLanes) {
      float x[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        x[k] = ReadStep<Spec>(t, output, step + k * Spec::kLanes);
      }
      AddFour(&state, x);
    }
  }
  // Code for a rest that cannot be costs time to compile.
  if constexpr (!Spec::kFourAtOnce || Spec::kSplits > 1 ||
                kNumSteps<typename Spec::View> % (4 * Spec::kLanes) != 0) {
#pragma unroll 1
    for (; step < end; step += Spec::kLanes) {
      state.Add(ReadStep<Spec>(t, output, step));
    }
  }
  return state;
}

// Merges the states of kLanes neighbouring threads into that of the first.
// All threads of the block must call it.
template <int kThreads, int kLanes, typename Reducer>
__device__ void MergeLanes(Reducer* state) {
  __shared__ float memory[kThreads * sizeof(Reducer) / sizeof(float)];
  Reducer* states = reinterpret_cast<Reducer*>(memory);
  const int lane = threadIdx.x % kLanes;
#pragma unroll 1
  for (int half = kLanes / 2; half > 0; half /= 2) {
    if (lane >= half && lane < 2 * half) states[threadIdx.x] = *state;
    // The upper half has written; the lower half may read.
    __syncthreads();
    if (lane < half) state->Merge(states[threadIdx.x + half]);
    // The lower half has read; its own upper half may write the same places.
    __syncthreads();
  }
}

template <typename Spec>
__device__ void Reduce(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  using View = typename Spec::View;
  constexpr int kOutputsPerBlock = Spec::kThreads / Spec::kLanes;
  constexpr Index kSteps = kNumSteps<View>;
  constexpr Index kSplitSteps = (kSteps + Spec::kSplits - 1) / Spec::kSplits;
  static_assert(Spec::kThreads % Spec::kLanes == 0 &&
                    (Spec::kLanes & (Spec::kLanes - 1)) == 0,
                "The merge tree needs a power of two that divides the block.");
  static_assert(
      kNumOutputs<View> * kNumSteps<View> == kNumElements<typename Spec::Input>,
      "The view must have as many elements as the input.");

  const Index output = static_cast<Index>(blockIdx.x) * kOutputsPerBlock +
                       static_cast<Index>(threadIdx.x / Spec::kLanes);
  const bool inside = output < kNumOutputs<View>;
  const Index begin = static_cast<Index>(blockIdx.y) * kSplitSteps;
  const Index end = min(begin + kSplitSteps, kSteps);
  const int lane = threadIdx.x % Spec::kLanes;

  typename Spec::Reducer state;
  if (inside) state = ReduceSteps<Spec>(t, output, begin + lane, end);
  if constexpr (Spec::kLanes > 1) {
    MergeLanes<Spec::kThreads, Spec::kLanes>(&state);
  }
  if (!inside || lane != 0) return;
  if constexpr (Spec::kSplits > 1) {
    t.partials[output * Spec::kSplits + blockIdx.y] = state;
  } else {
    Spec::Element(t, PointOf<typename Spec::Output>(output), state);
  }
}

// Second kernel where kSplits > 1: one thread per output.
template <typename Spec>
__device__ void MergeSplits(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  const Index output = GridStart<Index>();
  if (output >= kNumOutputs<typename Spec::View>) return;

  typename Spec::Reducer state;
#pragma unroll 1
  for (int split = 0; split < Spec::kSplits; ++split) {
    state.Merge(t.partials[output * Spec::kSplits + split]);
  }
  Spec::Element(t, PointOf<typename Spec::Output>(output), state);
}

}  // namespace kiln
