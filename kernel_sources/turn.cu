// A matrix turned around its diagonal: what lies behind each other comes to lie
// side by side.
//
//   output[column * kOutputPitch + row] = input[row * kInputPitch + column]
//
// for kRows rows and kColumns columns; zeros in rows from kRows up to
// kOutputPitch. Spec::Read gives an input element, computed from whatever lies
// in memory. A block moves a square of kSide elements a side through shared
// memory, so that warps read neighbours and write neighbours.
#include "math.cuh"
#include "point.cuh"
#include "storage_types.cuh"

namespace kiln {

template <typename Spec>
__device__ void Turn(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  constexpr int kSide = 32;
  constexpr int kWarps = 8;
  constexpr Index kAcross = (Spec::kColumns + kSide - 1) / kSide;
  // A column more, so that the elements of one lie in different banks.
  __shared__ float square[kSide][kSide + 1];
  const Index number = BlockInMemory<Spec>();
  const Index first_row = number / kAcross * kSide;
  const Index first_column = number % kAcross * kSide;
  const int lane = threadIdx.x % kSide;
#pragma unroll
  for (int k = threadIdx.x / kSide; k < kSide; k += kWarps) {
    const Index row = first_row + k;
    const Index column = first_column + lane;
    float value = 0.0f;
    if (row < Spec::kRows && column < Spec::kColumns) {
      value = Spec::Read(
          t, PointOf<typename Spec::Input>(row * Spec::kInputPitch + column));
    }
    square[k][lane] = value;
  }
  // The square is there.
  __syncthreads();
#pragma unroll
  for (int k = threadIdx.x / kSide; k < kSide; k += kWarps) {
    const Index row = first_row + lane;
    const Index column = first_column + k;
    if (row >= Spec::kOutputPitch || column >= Spec::kColumns) continue;
    Spec::Element(
        t, PointOf<typename Spec::Output>(column * Spec::kOutputPitch + row),
        square[lane][k]);
  }
}

}  // namespace kiln
