// Pooling of large windows, in two steps: a block takes the largest element, or
// the sum, of each column under its windows, and then of the columns of each
// window, which lie in shared memory by then. Each element is loaded once for
// each row of windows, by neighbours side by side.
//
// A block has Spec::kStripRows rows of windows, of whichever images, and of
// each Spec::kStripOutputs windows, or what is left of them.
#include "math.cuh"
#include "point.cuh"
#include "pool_window.cuh"
#include "storage_types.cuh"

namespace kiln {

template <typename Spec>
struct PoolStrip {
  using Index = typename Spec::Index;
  using Input = typename Spec::Input;
  using Output = typename Spec::Output;
  static constexpr int kColumns =
      (Spec::kStripOutputs - 1) * static_cast<int>(Spec::kStrideW) +
      (static_cast<int>(Spec::kKernelW) - 1) *
          static_cast<int>(Spec::kDilationW) +
      1;
  // Rows of windows of all images, and parts that each is cut into.
  static constexpr Index kRows =
      static_cast<Index>(Output::kN) * Output::kC * Output::kH;
  static constexpr Index kParts =
      (Output::kW + Spec::kStripOutputs - 1) / Spec::kStripOutputs;
  static constexpr Index kStrips =
      (kRows + Spec::kStripRows - 1) / Spec::kStripRows * kParts;

  Index first_row, first_output;

  __device__ explicit PoolStrip(Index strip)
      : first_row(strip / kParts * Spec::kStripRows),
        first_output(strip % kParts * Spec::kStripOutputs) {}
};

// The larger, or the sum.
template <typename Spec>
__device__ float PoolJoined(float a, float b) {
  return Spec::kMax ? Maximum(a, b) : a + b;
}

// Of column `w` of the input under the windows of row `row`: kRowsAtOnce
// elements are in flight before the first is used. For those outside others
// stand in: no branch delays a load.
template <typename Spec, typename Index>
__device__ float PoolColumn(const typename Spec::Tensors& t, Index row, Index w,
                            float nothing) {
  using Input = typename Spec::Input;
  using Output = typename Spec::Output;
  constexpr int kAtOnce = Spec::kRowsAtOnce;
  const Index plane = row / Output::kH;
  const Index top = row % Output::kH * Spec::kStrideH - Spec::kPaddingH;
  const TapsInside<Index> rows(top, Spec::kKernelH, Spec::kDilationH,
                               Input::kH);
  float joined = nothing;
#pragma unroll 1
  for (Index first = rows.begin; first < rows.end; first += kAtOnce) {
    float elements[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const Index h = top + (first + k) * Spec::kDilationH;
      const bool is_inside = h < Input::kH && first + k < rows.end;
      const Index inside = min(h, Input::kH - 1);
      const float element =
          Spec::Read(t, PointAt<Input, Index>(plane / Input::kC,
                                              plane % Input::kC, inside, w));
      elements[k] = is_inside ? element : nothing;
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      joined = PoolJoined<Spec>(joined, elements[k]);
    }
  }
  return joined;
}

template <typename Spec>
__device__ void PoolByColumns(const typename Spec::Tensors& t) {
  using Strip = PoolStrip<Spec>;
  using Index = typename Spec::Index;
  using Input = typename Spec::Input;
  using Output = typename Spec::Output;
  constexpr int kColumns = Strip::kColumns;
  constexpr int kOutputs = Spec::kStripOutputs;
  const float nothing = Spec::kMax ? -__int_as_float(0x7f800000) : 0.0f;
  __shared__ float columns[Spec::kStripRows * kColumns];

#pragma unroll 1
  for (Index i = BlockInMemory<Spec>(); i < Strip::kStrips; i += gridDim.x) {
    const Strip strip(i);
    const Index left = strip.first_output * Spec::kStrideW - Spec::kPaddingW;
#pragma unroll 1
    for (int k = threadIdx.x; k < Spec::kStripRows * kColumns;
         k += Spec::kThreads) {
      const Index row = strip.first_row + k / kColumns;
      const Index w = left + k % kColumns;
      const bool is_inside = row < Strip::kRows && w >= 0 && w < Input::kW;
      columns[k] =
          is_inside ? PoolColumn<Spec, Index>(t, row, w, nothing) : nothing;
    }
    // All columns of the windows are there.
    __syncthreads();
#pragma unroll 1
    for (int k = threadIdx.x; k < Spec::kStripRows * kOutputs;
         k += Spec::kThreads) {
      const Index row = strip.first_row + k / kOutputs;
      const Index w = strip.first_output + k % kOutputs;
      if (row >= Strip::kRows || w >= Output::kW) continue;
      const float* from =
          columns + k / kOutputs * kColumns + k % kOutputs * Spec::kStrideW;
      float joined = nothing;
#pragma unroll 4
      for (int kx = 0; kx < Spec::kKernelW; ++kx) {
        joined = PoolJoined<Spec>(joined, from[kx * Spec::kDilationW]);
      }
      const Index plane = row / Output::kH;
      const auto at = PointAt<Output, Index>(
          plane / Output::kC, plane % Output::kC, row % Output::kH, w);
      Spec::Element(t, at, FinishPool<Spec>(at, joined));
    }
    // The columns are read; the next strip's may take their place.
    __syncthreads();
  }
}

}  // namespace kiln
