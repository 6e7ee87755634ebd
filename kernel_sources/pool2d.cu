// max_pool2d: output[n,c,y,x] = the largest of the window, NaN if it holds one.
// avg_pool2d: output[n,c,y,x] = sum of the window / divisor, where the divisor
// is the part of the window inside the input, with padding or without, or a
// constant; 0 for a window without elements.
//
// input N x C x H x W, output N x C x OH x OW, contiguous. Spec::Read gives an
// input element, computed from whatever lies in memory, so pooling fuses with
// the pointwise operations before it.
//
// Where windows are small (Spec::kSmall; never in the variant plain), a thread
// has Spec::kVector neighbours along w: 4, or 1 where rows are no multiple of
// 4. It loads the rows under its windows whole, Spec::kVector elements an
// access, and all rows at once if what it computes of each element is short.
// Else one thread walks through the window of one output.
#include "math.cuh"
#include "point.cuh"
#include "storage_types.cuh"
#include "vectors.cuh"

namespace kiln {

template <typename Spec, typename Index>
__device__ float MaxPool2dAt(const typename Spec::Tensors& t, Point<Index> at) {
  using Input = typename Spec::Input;
  const Index top = at.h * Spec::kStrideH - Spec::kPaddingH;
  const Index left = at.w * Spec::kStrideW - Spec::kPaddingW;

  float largest = -__int_as_float(0x7f800000);  // -infinity: of no elements
#pragma unroll 1
  for (int ky = 0; ky < Spec::kKernelH; ++ky) {
    const Index h = top + ky * Spec::kDilationH;
    if (h < 0 || h >= Input::kH) continue;
#pragma unroll 1
    for (int kx = 0; kx < Spec::kKernelW; ++kx) {
      const Index w = left + kx * Spec::kDilationW;
      if (w < 0 || w >= Input::kW) continue;
      const auto from = PointAt<Input, Index>(at.n, at.c, h, w);
      largest = Maximum(largest, Spec::Read(t, from));
    }
  }
  return largest;
}

// The part [begin, end) of a window along one axis, and how long it would be
// with the padding counted.
template <typename Index>
struct Window {
  Index begin, end, padded_length;
};

template <typename Index>
__device__ Window<Index> WindowAt(Index output, int kernel, int stride,
                                  int padding, Index extent) {
  const Index begin = output * stride - padding;
  const Index padded_end = min(begin + kernel, extent + padding);
  return {max(begin, static_cast<Index>(0)), min(padded_end, extent),
          padded_end - begin};
}

// The mean of output `at`, whose window has the sum `sum`.
template <typename Spec, typename Index>
__device__ float DivideSum(const Point<Index>& at, float sum) {
  using Input = typename Spec::Input;
  if constexpr (Spec::kDivisor != 0) {
    return QuotientByConstant(sum, static_cast<float>(Spec::kDivisor));
  } else {
    const Window<Index> rows = WindowAt<Index>(
        at.h, Spec::kKernelH, Spec::kStrideH, Spec::kPaddingH, Input::kH);
    const Window<Index> columns = WindowAt<Index>(
        at.w, Spec::kKernelW, Spec::kStrideW, Spec::kPaddingW, Input::kW);
    if (rows.begin >= rows.end || columns.begin >= columns.end) return 0.0f;
    const Index count =
        Spec::kCountIncludePad
            ? rows.padded_length * columns.padded_length
            : (rows.end - rows.begin) * (columns.end - columns.begin);
    return sum / static_cast<float>(count);
  }
}

template <typename Spec, typename Index>
__device__ float AvgPool2dAt(const typename Spec::Tensors& t, Point<Index> at) {
  using Input = typename Spec::Input;
  const Window<Index> rows = WindowAt<Index>(
      at.h, Spec::kKernelH, Spec::kStrideH, Spec::kPaddingH, Input::kH);
  const Window<Index> columns = WindowAt<Index>(
      at.w, Spec::kKernelW, Spec::kStrideW, Spec::kPaddingW, Input::kW);

  // Row by row: short chains of additions keep the error small.
  float sum = 0.0f;
#pragma unroll 1
  for (Index h = rows.begin; h < rows.end; ++h) {
    float row_sum = 0.0f;
#pragma unroll 1
    for (Index w = columns.begin; w < columns.end; ++w) {
      row_sum += Spec::Read(t, PointAt<Input, Index>(at.n, at.c, h, w));
    }
    sum += row_sum;
  }
  return DivideSum<Spec>(at, sum);
}

// The columns of the input under Spec::kVector windows.
template <typename Spec>
struct PoolColumns {
  static constexpr int kColumns = (Spec::kVector - 1) * Spec::kStrideW +
                                  (Spec::kKernelW - 1) * Spec::kDilationW + 1;
  // Loads begin at a whole access: this many columns before the first window.
  static constexpr int kEarly =
      (Spec::kVector - Spec::kPaddingW % Spec::kVector) % Spec::kVector;
  static constexpr int kAccesses =
      (kEarly + kColumns + Spec::kVector - 1) / Spec::kVector;
  static constexpr int kLoaded = kAccesses * Spec::kVector;
};

// Row `h` of the input from column `left` on; `outside` beyond its edges.
// Accesses are inside or outside as a whole.
template <typename Spec, int kLoaded, typename Index>
__device__ void ReadRow(const typename Spec::Tensors& t,
                        const Point<Index>& output, Index h, Index left,
                        bool is_aligned, float outside, float (&row)[kLoaded]) {
  using Input = typename Spec::Input;
  constexpr int kVector = Spec::kVector;
#pragma unroll
  for (int k = 0; k < kLoaded; ++k) row[k] = outside;
  if (h < 0 || h >= Input::kH) return;
#pragma unroll
  for (int access = 0; access < kLoaded / kVector; ++access) {
    const Index w = left + access * kVector;
    if (w < 0 || w >= Input::kW) continue;
    const auto first = PointAt<Input, Index>(output.n, output.c, h, w);
    if constexpr (kVector == 1) {
      row[access] = Spec::Read(t, first);
    } else {
      typename Spec::template InputHeld<kVector> held;
      Spec::FetchInputHeld(t, first, is_aligned, &held);
#pragma unroll
      for (int k = 0; k < kVector; ++k) {
        row[access * kVector + k] =
            Spec::Read(held, VectorPointOf<Input, kVector>(first, k));
      }
    }
  }
}

// The largest, or the sum, of the windows of the outputs from `first` on.
template <typename Spec, typename Index>
__device__ void PoolVector(const typename Spec::Tensors& t,
                           const Point<Index>& first, bool is_aligned,
                           float (&results)[Spec::kVector]) {
  using Columns = PoolColumns<Spec>;
  const float nothing = Spec::kMax ? -__int_as_float(0x7f800000) : 0.0f;
  const Index top = first.h * Spec::kStrideH - Spec::kPaddingH;
  const Index left =
      first.w * Spec::kStrideW - Spec::kPaddingW - Columns::kEarly;
#pragma unroll
  for (int x = 0; x < Spec::kVector; ++x) results[x] = nothing;
#pragma unroll(Spec::kRowsAtOnce)
  for (int ky = 0; ky < Spec::kKernelH; ++ky) {
    float row[Columns::kLoaded];
    ReadRow<Spec>(t, first, top + ky * Spec::kDilationH, left, is_aligned,
                  nothing, row);
#pragma unroll
    for (int x = 0; x < Spec::kVector; ++x) {
      float of_row = nothing;
#pragma unroll
      for (int kx = 0; kx < Spec::kKernelW; ++kx) {
        const float element =
            row[Columns::kEarly + x * Spec::kStrideW + kx * Spec::kDilationW];
        of_row = Spec::kMax ? Maximum(of_row, element) : of_row + element;
      }
      results[x] =
          Spec::kMax ? Maximum(results[x], of_row) : results[x] + of_row;
    }
  }
}

template <typename Spec, typename Index>
__device__ float FinishPool(const Point<Index>& at, float result) {
  if constexpr (Spec::kMax) {
    return result;
  } else {
    return DivideSum<Spec>(at, result);
  }
}

template <typename Spec>
__device__ void PoolSmallWindows(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  using Output = typename Spec::Output;
  constexpr int kVector = Spec::kVector;
  static_assert(Output::kW % kVector == 0 && Spec::Input::kW % kVector == 0,
                "Vectors must not cross the end of a row.");
  bool is_aligned = true;
  if constexpr (kVector > 1) {
    is_aligned = Spec::IsAligned(t) && Spec::IsInputAligned(t);
  }
#pragma unroll 1
  for (Index i = GridStart<Index>(BlockInMemory<Spec>());
       i < kNumElements<Output> / kVector; i += GridStride<Index>()) {
    const auto first = PointOf<Output>(i * kVector);
    float results[kVector];
    PoolVector<Spec>(t, first, is_aligned, results);
    if constexpr (kVector == 1) {
      Spec::Element(t, first, FinishPool<Spec>(first, results[0]));
    } else {
      typename Spec::template Held<kVector> held;
      Spec::FetchHeld(t, first, is_aligned, &held);
#pragma unroll
      for (int k = 0; k < kVector; ++k) {
        const Point<Index> at = {first.i + k, first.n, first.c, first.h,
                                 first.w + k};
        Spec::Element(held, VectorPointOf<Output, kVector>(first, k),
                      FinishPool<Spec>(at, results[k]));
      }
      Spec::PutHeld(held, first, is_aligned, t);
    }
  }
}

template <typename Spec>
__device__ void Pool2d(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  constexpr long long kCount = kNumElements<typename Spec::Output>;
  static_assert(static_cast<Index>(kCount) == kCount,
                "Index must hold the number of elements.");
  if constexpr (Spec::kSmall) {
    PoolSmallWindows<Spec>(t);
  } else {
#pragma unroll 1
    for (Index i = GridStart<Index>(BlockInMemory<Spec>()); i < kCount;
         i += GridStride<Index>()) {
      const auto at = PointOf<typename Spec::Output>(i);
      if constexpr (Spec::kMax) {
        Spec::Element(t, at, MaxPool2dAt<Spec>(t, at));
      } else {
        Spec::Element(t, at, AvgPool2dAt<Spec>(t, at));
      }
    }
  }
}

}  // namespace kiln
