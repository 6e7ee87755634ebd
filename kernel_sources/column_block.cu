// Softmax, or what is computed of a reduction, over an axis whose steps are
// apart in memory, in two touches: each block reads a strip of rows side by
// side, keeps them in shared memory, and writes the results.
//
//   row statistics = Spec::Reducer over x = Spec::Read; where that sums powers
//                    (Spec::kTwoPasses), the largest x and the sum of
//                    e^(x - largest)
//   outputs        = Spec::Element(element, x or power, statistics)
//
// A row is Spec::kRowLength elements, Spec::kPitch apart; the neighbours of an
// element belong to other rows. Threads next to each other take vectors of
// Spec::kVector neighbours, Spec::kLanes rows of threads share the steps, and
// every thread keeps its own elements in places of its own (row_places.cuh).
// No atomics; one fixed order.
#include "math.cuh"
#include "merge_columns.cuh"
#include "reducers.cuh"
#include "row_places.cuh"

namespace kiln {

// Where one thread works. Threads past the end of a strip or of their rows do
// again what the last one does but for sums and writing.
template <typename Spec>
struct ColumnPart {
  using Index = typename Spec::Index;
  static constexpr int kColumns = Spec::kThreads / Spec::kLanes;  // of threads
  static constexpr int kSteps =
      (Spec::kRowLength + Spec::kLanes - 1) / Spec::kLanes;
  static constexpr Index kStrips =
      (Spec::kPitch + kColumns * Spec::kVector - 1) /
      (kColumns * Spec::kVector);

  Index begin;  // of the thread's first row, in memory
  int column, lane;
  bool is_inside;
  bool is_aligned;  // the tensors are

  __device__ explicit ColumnPart(const typename Spec::Tensors& t) {
    is_aligned = Spec::IsAligned(t);
    column = threadIdx.x % kColumns;
    lane = threadIdx.x / kColumns;
    const Index block = BlockInMemory<Spec>();
    const Index at = (block % kStrips * kColumns + column) * Spec::kVector;
    is_inside = at < Spec::kPitch;
    begin = block / kStrips * Spec::kRowLength * Spec::kPitch +
            min(at, Spec::kPitch - Spec::kVector);
  }
  __device__ Index PositionOf(int step) const {
    const Index place = step * Spec::kLanes + lane;
    return begin + min(place, Spec::kRowLength - 1) * Spec::kPitch;
  }
  // Steps of this thread that are none of the last one's again.
  __device__ int steps() const {
    return (Spec::kRowLength - lane + Spec::kLanes - 1) / Spec::kLanes;
  }
};

// Starts the copies of the thread's elements, a group for each kAtOnce places.
template <typename Spec>
__device__ void CopyColumns(const typename Spec::Tensors& t,
                            const ColumnPart<Spec>& part,
                            const Places<Spec>& places) {
#pragma unroll 1
  for (int step = 0; step < ColumnPart<Spec>::kSteps; step += Spec::kAtOnce) {
#pragma unroll
    for (int k = 0; k < Spec::kAtOnce; ++k) {
      if (step + k >= ColumnPart<Spec>::kSteps) continue;
      places.Begin(Spec::Source(t), part.PositionOf(step + k), part.is_aligned,
                   step + k);
    }
    CommitCopies();
  }
}

// An element; the last of a thread may be taken again, where it `is_again`.
__device__ inline void TakeOne(Largest* state, float x, bool) {
  state->value = fmaxf(state->value, x);
}
template <typename Reducer>
__device__ void TakeOne(Reducer* state, float x, bool is_again) {
  if (!is_again) state->Add(x);
}

// Takes the thread's elements in each of its rows, kAtOnce vectors at a time;
// keeps them.
template <typename Spec, typename State>
__device__ void TakeColumns(const typename Spec::Tensors& t,
                            const ColumnPart<Spec>& part,
                            const Places<Spec>& places, State* states) {
  constexpr int kVector = Spec::kVector;
  constexpr int kAtOnce = Spec::kAtOnce;
  constexpr int kSteps = ColumnPart<Spec>::kSteps;
  if constexpr (Spec::kCopied) CopyColumns<Spec>(t, part, places);
#pragma unroll 1
  for (int step = 0; step < kSteps; step += kAtOnce) {
    // One group of this thread has been begun, or is empty, for each step.
    if constexpr (Spec::kCopied) WaitForCopies<(kSteps - 1) / kAtOnce>();
    float x[kAtOnce][kVector];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int own = min(step + k, kSteps - 1);
      ReadVector<Spec>(t, places, own, part.PositionOf(own), part.is_aligned,
                       x[k]);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        TakeOne(&states[j], x[k][j], step + k >= part.steps());
      }
      if constexpr (Spec::kPutsRead) {
        places.Put(min(step + k, kSteps - 1), x[k]);
      }
    }
    if constexpr (Spec::kCopied) CommitCopies();
  }
}

// What the largest element is subtracted as (reducers.cuh); infinite ones make
// softmax NaN.
template <typename Spec>
__device__ float Subtrahend(const Largest& largest) {
  if constexpr (__is_base_of(SoftmaxSum, typename Spec::Reducer)) {
    return largest.value;
  } else {
    return PivotOf(largest.value);
  }
}

// The sums of e^(x - largest) over the thread's elements, which it keeps in
// their stead where Spec::kKeepsPowers. They are few: plain sums will do.
template <typename Spec>
__device__ void TakePowers(const ColumnPart<Spec>& part,
                           const Places<Spec>& places, const Largest* largest,
                           Sum* sums) {
  const int steps = part.steps();
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    Vector<float, Spec::kVector> x;
    places.Get(step, &x);
#pragma unroll
    for (int j = 0; j < Spec::kVector; ++j) {
      x.elements[j] = Exp(x.elements[j] - Subtrahend<Spec>(largest[j]));
      sums[j].sum += x.elements[j];
    }
    if constexpr (Spec::kKeepsPowers) places.Put(step, x.elements);
  }
}

// Memory of a block for a state of two words of each thread's rows.
template <typename Spec>
__device__ float* SharedWords() {
  __shared__ float words[2 * Spec::kThreads * Spec::kVector];
  return words;
}

template <typename Spec, typename State>
__device__ void MergeStates(State* states) {
  static_assert(sizeof(State) <= 2 * sizeof(float), "There is no more room.");
  MergeColumns<Spec::kThreads, Spec::kLanes, Spec::kVector>(SharedWords<Spec>(),
                                                            states);
}

// Gives each of the thread's rows its state.
template <typename Spec, typename Reducer>
__device__ void CountColumns(const typename Spec::Tensors& t,
                             const ColumnPart<Spec>& part,
                             const Places<Spec>& places, Reducer* states) {
  if constexpr (Spec::kTwoPasses) {
    Largest largest[Spec::kVector];
    TakeColumns<Spec>(t, part, places, largest);
    MergeStates<Spec>(largest);
    Sum sums[Spec::kVector];
    TakePowers<Spec>(part, places, largest, sums);
    MergeStates<Spec>(sums);
#pragma unroll
    for (int j = 0; j < Spec::kVector; ++j) {
      states[j].largest = largest[j].value;
      states[j].scaled = sums[j];
    }
  } else {
    TakeColumns<Spec>(t, part, places, states);
    MergeStates<Spec>(states);
  }
}

template <typename Spec>
__device__ void KeepColumns(const typename Spec::Tensors& t,
                            const Places<Spec>& places) {
  const ColumnPart<Spec> part(t);
  typename Spec::Reducer states[Spec::kVector];
  CountColumns<Spec>(t, part, places, states);
  if (!part.is_inside) return;

  typename Spec::Statistics statistics[Spec::kVector];
#pragma unroll
  for (int j = 0; j < Spec::kVector; ++j) {
    statistics[j] = Spec::Finish(states[j]);
  }
  const int steps = part.steps();
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    FinishVector<Spec, true>(t, places, step, part.PositionOf(step),
                             part.is_aligned, statistics);
  }
}

template <typename Spec>
__device__ void ColumnBlock(const typename Spec::Tensors& t) {
  static_assert(
      Spec::kThreads % Spec::kLanes == 0 &&
          (Spec::kLanes & (Spec::kLanes - 1)) == 0,
      "The lanes of a row are a power of two that divides the block.");
  static_assert(Spec::kPitch % Spec::kVector == 0,
                "Vectors must not cross the end of a strip.");
  static_assert(Spec::kKeepsRead || !Spec::kTwoPasses,
                "Powers are taken of values of f32.");
  constexpr int kKept =
      ColumnPart<Spec>::kSteps * Spec::kVector * Spec::kThreads;
  if constexpr (Spec::kDynamicShared) {
    extern __shared__ float4 dynamic_shared[];
    KeepColumns<Spec>(t,
                      {reinterpret_cast<typename Spec::Kept*>(dynamic_shared)});
  } else {
    alignas(16) __shared__ typename Spec::Kept static_shared[kKept];
    KeepColumns<Spec>(t, {static_shared});
  }
}

}  // namespace kiln
