// Statistics of group_norm of what a convolution with few channels in makes,
// without making it: a channel's result at each pixel is w . x, with the
// filter's weights w and what they meet of the input, x; the sum of its squares
// over all pixels is w' C w, with the correlations of the input
//
//   C[i, j] = sum of x[i] x[j] over all pixels,
//
// i and j of all channels and taps, and the sum of results is w . s, with the
// sums s of x. There are far fewer of these than results. Two taps that lie
// `lag` rows apart have products of the same pairs of rows wherever they lie in
// the filter, but for rows near the edges.
//
// Values are rounded to 11 bits, as the convolution rounds them where it is
// allowed to (conv_halves.cuh); of them and of weights so rounded products are
// exact. Sums have f32's errors relative to |w|' C |w|, and those of rounding
// values are larger unless the results' deviation is some 2^-12 of that.
#include "correlated_states.cuh"
#include "correlator.cuh"
#include "dependent_launch.cuh"

namespace kiln {

// A block has a strip of an image, and the columns of a warp's reach.
template <typename Spec>
__device__ void Correlate(const typename Spec::Tensors& t) {
  using Extents = Correlations<Spec>;
  using Shared = typename Correlator<Spec>::Shared;
  static_assert(sizeof(Shared) == Spec::kCorrelatorBytes,
                "The launch asks for this much.");
  extern __shared__ __align__(16) float dynamic_shared[];
  const int strip = blockIdx.x % Spec::kStrips;
  const int columns = blockIdx.x / Spec::kStrips;  // of all images
  const int first = Extents::FirstPartOf(strip);
  const int end = Extents::EndPartOf(strip);
  Correlator<Spec> correlator(
      t, columns / Spec::kColumnBlocks,
      columns % Spec::kColumnBlocks * RoundedRows<Spec>::kColumns,
      Extents::FirstOf(first), Extents::FirstOf(end),
      reinterpret_cast<Shared*>(dynamic_shared));
  const int number = columns * Extents::kParts + first;
  correlator.Run(first,
                 reinterpret_cast<float4*>(t.correlations) +
                     static_cast<long long>(number) * (Extents::kFloats / 4),
                 Extents::ScalesIn(t.correlations) + number);
}

// By a block for each image, which waits for the correlations itself.
template <typename Spec>
__device__ void LeaveCorrelatedStates(const typename Spec::Tensors& t) {
  extern __shared__ __align__(16) float dynamic_shared[];
  using States = CorrelatedStates<Spec>;
  using Shared = typename States::Shared;
  static_assert(sizeof(Shared) == Spec::kStatesBytes,
                "The launch asks for this much.");
  States(t, reinterpret_cast<Shared*>(dynamic_shared)).Run(AwaitPrevious);
}

}  // namespace kiln
