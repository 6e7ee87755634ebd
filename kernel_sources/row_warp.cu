// Norms, softmax and what else is computed of a reduction over rows so short
// that threads hold them in registers: the lanes of a warp, of a part of one,
// or of several.
//
//   row statistics = reducer over x = Spec::Read of the row's elements
//   outputs        = Spec::Element(element, x or power, statistics)
//
// A row is Spec::kRowLength neighbours in memory, Spec::kLanes lanes work on
// it. Statistics take as many passes over the registers as they like: the mean
// comes before the differences from it, the largest value before the powers.
// No atomics; one fixed order. Lanes of a warp need neither shared memory nor
// barriers.
#include "held_values.cuh"
#include "math.cuh"
#include "reducers.cuh"
#include "vectors.cuh"

namespace kiln {

template <typename Spec>
struct WarpRow {
  using Index = typename Spec::Index;
  static constexpr int kVector = Spec::kVector;
  static constexpr int kStride = Spec::kLanes * kVector;
  static constexpr int kSteps = (Spec::kRowLength + kStride - 1) / kStride;
  static constexpr int kCount = kSteps * kVector;  // elements of a lane

  Index begin;  // of the row, in memory
  int first;    // of the lane's elements, in the row
  bool is_aligned;

  // A step past the end of the row.
  __device__ bool IsPast(int step) const {
    return Spec::kRowLength % kStride != 0 &&
           first + step * kStride >= Spec::kRowLength;
  }
};

// What a lane holds of the tensors, for each step.
template <typename Spec>
struct HeldRow {
  typename Spec::template Held<Spec::kVector> steps[WarpRow<Spec>::kSteps];
};

// Reads the lane's elements; steps past the end give `neutral`.
template <typename Spec>
__device__ void ReadWarpRow(const typename Spec::Tensors& t,
                            const WarpRow<Spec>& row, float neutral,
                            HeldRow<Spec>* held_row,
                            float (&x)[WarpRow<Spec>::kCount]) {
  using Domain = typename Spec::Domain;
  constexpr int kVector = Spec::kVector;
#pragma unroll
  for (int step = 0; step < WarpRow<Spec>::kSteps; ++step) {
    // Past its end, a row's last vector stands in: no branch delays a load.
    const int at = min(row.first + step * WarpRow<Spec>::kStride,
                       static_cast<int>(Spec::kRowLength) - kVector);
    auto& held = held_row->steps[step];
    const auto first = PointOf<Domain>(row.begin + at);
    Spec::FetchForRead(t, first, row.is_aligned, &held);
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      const float value =
          Spec::Read(held, VectorPointOf<Domain, kVector>(first, k));
      x[step * kVector + k] = row.IsPast(step) ? neutral : value;
    }
  }
}

// Moments are corrected by a second pass.
template <typename Spec, typename Lanes>
__device__ void CountWarpRow(const WarpRow<Spec>& row, Lanes& lanes,
                             const float (&x)[WarpRow<Spec>::kCount],
                             Moments* state) {
  CountHeldMoments<Spec::kRowLength>(
      lanes, x, [&](int k) { return row.IsPast(k / Spec::kVector); }, state);
}

// Of any other reduction.
template <typename Spec, typename Lanes, typename Reducer>
__device__ void CountWarpRow(const WarpRow<Spec>&, Lanes& lanes,
                             const float (&x)[WarpRow<Spec>::kCount],
                             Reducer* state) {
  CountHeld(lanes, x, state);
}

// Leaves e^(x - largest) in the place of x where Spec::kKeepsPowers.
template <typename Spec, typename Lanes>
__device__ void CountWarpRow(const WarpRow<Spec>&, Lanes& lanes,
                             float (&x)[WarpRow<Spec>::kCount],
                             SoftmaxSum* state) {
  constexpr int kCount = WarpRow<Spec>::kCount;
  const auto larger = [](float a, float b) { return fmaxf(a, b); };
  const float largest = lanes.All(OfAll(x, larger), larger);
  float powers[kCount];
#pragma unroll
  for (int k = 0; k < kCount; ++k) powers[k] = Exp(x[k] - largest);
  state->largest = largest;
  state->scaled.sum = lanes.All(SumOf(powers), Add);
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    if constexpr (Spec::kKeepsPowers) x[k] = powers[k];
  }
}

// Of what was held when it was read where Spec::Element uses that, too: then x
// is computed of it again, and else of `x`.
template <typename Spec>
__device__ void WriteWarpRow(const typename Spec::Tensors& t,
                             const WarpRow<Spec>& row,
                             const HeldRow<Spec>& held_row, const float* x,
                             const typename Spec::Statistics& statistics) {
  using Domain = typename Spec::Domain;
  constexpr int kVector = Spec::kVector;
#pragma unroll
  for (int step = 0; step < WarpRow<Spec>::kSteps; ++step) {
    if (row.IsPast(step)) continue;
    auto held = held_row.steps[step];
    const auto first =
        PointOf<Domain>(row.begin + row.first + step * WarpRow<Spec>::kStride);
    Spec::FetchForElement(t, first, row.is_aligned, &held);
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      const auto at = VectorPointOf<Domain, kVector>(first, k);
      const float read =
          Spec::kKeepsRead ? x[step * kVector + k] : Spec::Read(held, at);
      Spec::Element(held, at, read, statistics);
    }
    Spec::PutResults(t, first.i, row.is_aligned, held);
  }
}

template <typename Spec>
__device__ void RowWarp(const typename Spec::Tensors& t) {
  static_assert(Spec::kRowLength % Spec::kVector == 0,
                "Vectors must not cross the end of a row.");
  using Index = typename Spec::Index;
  const Index number = static_cast<Index>(BlockInMemory<Spec>()) *
                           (Spec::kThreads / Spec::kLanes) +
                       static_cast<Index>(threadIdx.x / Spec::kLanes);
  // Lanes without a row do the last one's work but for the writing, since all
  // must take part in shuffles.
  const WarpRow<Spec> row{
      min(number, Spec::kRows - 1) * Spec::kRowLength,
      static_cast<int>(threadIdx.x % Spec::kLanes) * Spec::kVector,
      Spec::IsAligned(t)};
  HeldRow<Spec> held;
  float x[WarpRow<Spec>::kCount];
  using Reducer = typename Spec::Reducer;
  ReadWarpRow<Spec>(t, row, kHasNeutral<Reducer> ? NeutralOf<Reducer>() : 0.0f,
                    &held, x);
  Reducer state;
  using Lanes = RowLanes<Spec::kThreads, Spec::kLanes>;
  __shared__ float memory[Lanes::kWords];
  Lanes lanes(memory);
  CountWarpRow<Spec>(row, lanes, x, &state);
  if (number < Spec::kRows) {
    WriteWarpRow<Spec>(t, row, held, x, Spec::Finish(state));
  }
}

}  // namespace kiln
