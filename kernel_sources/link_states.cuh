// States of several links (chain_part.cuh) that are taken in one pass over the
// elements, and merged as one.
//
//   kiln::StatesOfLinks<Spec, 0, 3> states;
//   float values[3];
//   kiln::ValuesOfLinks<Spec, 0, 3>(held, at, row, values);
//   ...
//   kiln::TakeLinks<4>(count, 0, x, &states);
//   kiln::FinishLinks<Spec, 0, 3>(states, &row);
#ifndef KILN_KERNEL_SOURCES_LINK_STATES_CUH_
#define KILN_KERNEL_SOURCES_LINK_STATES_CUH_

#include "chain_part.cuh"
#include "reducers.cuh"

namespace kiln {

// The state of a link, and those of the links behind it.
template <typename First, typename Rest>
struct LinkStates {
  First first;
  Rest rest;

  __device__ void Merge(const LinkStates& other) {
    first.Merge(other.first);
    rest.Merge(other.rest);
  }
};

template <typename Spec, int kLink, int kEnd>
struct StatesOfLinksType {
  using First = decltype(Spec::StateOf(Link<kLink>()));
  using Rest = typename StatesOfLinksType<Spec, kLink + 1, kEnd>::Type;
  using Type = LinkStates<First, Rest>;
};
// A link alone has its own state.
template <typename Spec, int kLink>
struct StatesOfLinksType<Spec, kLink, kLink + 1> {
  using Type = decltype(Spec::StateOf(Link<kLink>()));
};

// Of the links from kLink to kEnd.
template <typename Spec, int kLink, int kEnd>
using StatesOfLinks = typename StatesOfLinksType<Spec, kLink, kEnd>::Type;

// What the links take of one element.
template <typename Spec, int kLink, int kEnd, typename Held, typename At>
__device__ void ValuesOfLinks(Held& held, const At& at,
                              const typename Spec::Statistics& row,
                              float* values) {
  values[0] = Spec::Value(held, at, row, Link<kLink>());
  if constexpr (kLink + 1 < kEnd) {
    ValuesOfLinks<Spec, kLink + 1, kEnd>(held, at, row, values + 1);
  }
}

// Takes the first `count` vectors of kAlong values; the others may be anything.
// Each link has its values in x[link][row].
template <int kAlong, int kRows, int kCount, typename State>
__device__ void TakeLinks(int count, int row, float (*x)[kRows][kCount],
                          State* state) {
  if (count * kAlong >= kCount) {
    Take(state, x[0][row]);
  } else {
    TakeFirst<kAlong>(count, x[0][row], state);
  }
}

template <int kAlong, int kRows, int kCount, typename First, typename Rest>
__device__ void TakeLinks(int count, int row, float (*x)[kRows][kCount],
                          LinkStates<First, Rest>* states) {
  TakeLinks<kAlong>(count, row, x, &states->first);
  TakeLinks<kAlong>(count, row, x + 1, &states->rest);
}

// The statistics of the links from kLink to kEnd, of a row.
template <typename Spec, int kLink, int kEnd, typename States>
__device__ void FinishLinks(const States& states,
                            typename Spec::Statistics* row) {
  if constexpr (kLink + 1 == kEnd) {
    Spec::Finish(states, Link<kLink>(), row);
  } else {
    Spec::Finish(states.first, Link<kLink>(), row);
    FinishLinks<Spec, kLink + 1, kEnd>(states.rest, row);
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_LINK_STATES_CUH_
