// Several reductions over the same rows, and what is computed of them
// (row_chain.cu), of rows so short that threads hold them in registers.
//
// A row is Spec::kRowLength elements, Spec::kPitch apart, or runs of Spec::kRun
// neighbours with those of all other rows between them. Where the pitch is 1,
// Spec::kLanes lanes of a warp, or so many threads of a block, share a row.
// Else rows lie side by side: a thread works on Spec::kVector of them, and
// Spec::kLanes threads above each other share theirs. All that links are made
// of is read once, and what several of them need is computed once: Spec::Made
// is what long ops have made of an element. Only statistics are exchanged. No
// atomics; one fixed order.
#include "chain_part.cuh"
#include "held_values.cuh"
#include "math.cuh"
#include "opaque.cuh"
#include "reducers.cuh"
#include "vectors.cuh"

namespace kiln {

// What a thread holds of the tensors, for each of its steps.
template <typename Spec>
struct HeldChain {
  using Part = ChainPart<Spec>;
  static constexpr int kCount = Part::kSteps * Part::kAlong;  // of a row

  typename Spec::template Held<Spec::kVector> steps[Part::kSteps];
  typename Spec::Made made[Part::kSteps][Spec::kVector];

  // Whether a row ends before the step.
  static __device__ bool IsPast(const Part& part, int step) {
    return Spec::kRowLength % Part::kStride != 0 &&
           part.first + step * Part::kStride >= Spec::kRowLength;
  }

  // Past its end, a row's last vector stands in: no branch delays a load.
  static __device__ auto PointOfStep(const Part& part, int step) {
    constexpr int kLast = static_cast<int>(Spec::kRowLength) - Part::kAlong;
    const int at = part.first + step * Part::kStride;
    return part.PointIn(Spec::kRowLength % Part::kStride == 0 ? at
                                                              : min(at, kLast));
  }

  __device__ HeldChain(const typename Spec::Tensors& t, const Part& part) {
#pragma unroll
    for (int step = 0; step < Part::kSteps; ++step) {
      Spec::FetchForRead(t, PointOfStep(part, step), part.is_aligned,
                         &steps[step]);
    }
  }
};

// The link's statistic of one of the thread's rows.
template <typename Spec, int kLink, typename Lanes>
__device__ void CountLink(const ChainPart<Spec>& part, int number, Lanes* lanes,
                          HeldChain<Spec>* held,
                          typename Spec::Statistics* row) {
  using Part = ChainPart<Spec>;
  using Held = HeldChain<Spec>;
  using State = decltype(Spec::StateOf(Link<kLink>()));
  float x[Held::kCount];
#pragma unroll
  for (int step = 0; step < Part::kSteps; ++step) {
    const auto first = Held::PointOfStep(part, step);
#pragma unroll
    for (int j = 0; j < Part::kAlong; ++j) {
      const auto at = VectorPointOf<typename Spec::Domain, Spec::kVector>(
          first, number + j);
      const float value =
          Spec::Value(held->steps[step], at, *row, held->made[step][number + j],
                      Link<kLink>());
      const float neutral = kHasNeutral<State> ? NeutralOf<State>() : 0.0f;
      x[step * Part::kAlong + j] = Held::IsPast(part, step) ? neutral : value;
    }
  }
  State state;
  if constexpr (kHasNeutral<State>) {
    CountHeld(*lanes, x, &state);
  } else {
    CountHeldMoments<Spec::kRowLength>(
        *lanes, x, [&](int k) { return Held::IsPast(part, k / Part::kAlong); },
        &state);
  }
  Spec::Finish(state, Link<kLink>(), row);
}

// Computes the statistics of the links from kLink on.
template <typename Spec, int kLink, typename Lanes>
__device__ void CountLinks(const ChainPart<Spec>& part, Lanes* lanes,
                           HeldChain<Spec>* held,
                           typename Spec::Statistics* rows) {
  if constexpr (kLink < Spec::kLinks) {
#pragma unroll
    for (int row = 0; row < ChainPart<Spec>::kRows; ++row) {
      CountLink<Spec, kLink>(part, row, lanes, held, &rows[row]);
    }
    CountLinks<Spec, kLink + 1>(part, lanes, held, rows);
  }
}

// The statistics of all links.
template <typename Spec>
__device__ void CountLinks(const ChainPart<Spec>& part, HeldChain<Spec>* held,
                           typename Spec::Statistics* rows) {
  if constexpr (Spec::kPitch > 1) {
    __shared__ float memory[2 * Spec::kThreads];
    ColumnLanes<Spec::kThreads, Spec::kLanes> lanes(memory);
    CountLinks<Spec, 0>(part, &lanes, held, rows);
  } else {
    using Lanes = RowLanes<Spec::kThreads, Spec::kLanes>;
    __shared__ float memory[Lanes::kWords];
    Lanes lanes(memory);
    CountLinks<Spec, 0>(part, &lanes, held, rows);
  }
}

template <typename Spec>
__device__ void WriteElements(const typename Spec::Tensors& t,
                              const ChainPart<Spec>& part,
                              const HeldChain<Spec>& held_chain,
                              const typename Spec::Statistics* rows) {
  using Part = ChainPart<Spec>;
  using Domain = typename Spec::Domain;
#pragma unroll
  for (int step = 0; step < Part::kSteps; ++step) {
    if (HeldChain<Spec>::IsPast(part, step)) continue;
    auto held = held_chain.steps[step];
    const auto first = HeldChain<Spec>::PointOfStep(part, step);
    Spec::FetchForElement(t, first, part.is_aligned, &held);
#pragma unroll
    for (int j = 0; j < Spec::kVector; ++j) {
      Spec::Element(held, VectorPointOf<Domain, Spec::kVector>(first, j),
                    rows[Part::kSideBySide ? j : 0], held_chain.made[step][j]);
    }
    Spec::PutResults(t, first.i, Opaque(part.is_aligned), held);
  }
}

template <typename Spec>
__device__ void RowWarpChain(const typename Spec::Tensors& t) {
  static_assert(Spec::kCluster == 1, "A block has whole rows.");
  static_assert(
      (Spec::kPitch > 1 ? Spec::kPitch : Spec::kRun) % Spec::kVector == 0,
      "Vectors must not cross the end of a row or a strip.");
  const ChainPart<Spec> part(t);
  HeldChain<Spec> held(t, part);
  typename Spec::Statistics rows[ChainPart<Spec>::kRows];
  CountLinks<Spec>(part, &held, rows);
  if (!part.is_inside) return;
  if constexpr (Spec::kWritesElements) WriteElements<Spec>(t, part, held, rows);
  if constexpr (Spec::kWritesRows) WriteNumbers<Spec>(t, part, rows);
}

}  // namespace kiln
