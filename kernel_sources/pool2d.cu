// max_pool2d: output[n,c,y,x] = the largest of the window, NaN if it holds one.
// avg_pool2d: output[n,c,y,x] = sum of the window / divisor, where the divisor
// is the part of the window inside the input, with padding or without, or a
// constant; 0 for a window without elements.
//
// input N x C x H x W, output N x C x OH x OW, contiguous. Spec::Read gives an
// input element, computed from whatever lies in memory, so pooling fuses with
// the pointwise operations before it.
//
// Where windows are small (Spec::kSmall), a thread has Spec::kVector neighbours
// along w: 4, or 1 where rows are no multiple of 4, and then, where that pays,
// Spec::kTall outputs below each other, whose windows share rows. It loads the
// rows under its windows whole, Spec::kVector elements an access, and all rows
// at once if what it computes of each element is short and registers suffice.
// Where they are large, pool_columns.cu takes their place. Else one thread
// walks through the window of one output.
#include "math.cuh"
#include "point.cuh"
#include "pool_window.cuh"
#include "storage_types.cuh"
#include "vectors.cuh"

namespace kiln {

template <typename Spec, typename Index>
__device__ float MaxPool2dAt(const typename Spec::Tensors& t, Point<Index> at) {
  using Input = typename Spec::Input;
  const Index top = at.h * Spec::kStrideH - Spec::kPaddingH;
  const Index left = at.w * Spec::kStrideW - Spec::kPaddingW;

  const TapsInside<Index> rows(top, Spec::kKernelH, Spec::kDilationH,
                               Input::kH);
  const TapsInside<Index> columns(left, Spec::kKernelW, Spec::kDilationW,
                                  Input::kW);

  float largest = -__int_as_float(0x7f800000);  // -infinity: of no elements
#pragma unroll 1
  for (Index ky = rows.begin; ky < rows.end; ++ky) {
    const Index h = top + ky * Spec::kDilationH;
#pragma unroll 1
    for (Index kx = columns.begin; kx < columns.end; ++kx) {
      const Index w = left + kx * Spec::kDilationW;
      const auto from = PointAt<Input, Index>(at.n, at.c, h, w);
      largest = Maximum(largest, Spec::Read(t, from));
    }
  }
  return largest;
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

// The columns of the input under Spec::kVector windows, and the rows under
// Spec::kTall of them.
template <typename Spec>
struct PoolReach {
  using Input = typename Spec::Input;
  using Output = typename Spec::Output;
  static constexpr int kColumns = (Spec::kVector - 1) * Spec::kStrideW +
                                  (Spec::kKernelW - 1) * Spec::kDilationW + 1;
  // Loads begin at a whole access: this many columns before the first window.
  static constexpr int kEarly =
      (Spec::kVector - Spec::kPaddingW % Spec::kVector) % Spec::kVector;
  static constexpr int kAccesses =
      (kEarly + kColumns + Spec::kVector - 1) / Spec::kVector;
  static constexpr int kLoaded = kAccesses * Spec::kVector;
  static constexpr int kRows =
      (Spec::kTall - 1) * Spec::kStrideH + static_cast<int>(Spec::kKernelH);
  // In flight at once.
  static constexpr bool kLoadsAll =
      Spec::kRowsAtOnce > 1 && kRows* kLoaded <= 48;
  static constexpr int kAtOnce = kLoadsAll ? kRows : 1;
  // Whether all that is loaded lies inside.
  static constexpr bool kHasRows = Spec::kPaddingH == 0 &&
                                   Output::kH % Spec::kTall == 0 &&
                                   (Output::kH - Spec::kTall) * Spec::kStrideH +
                                           (kRows - 1) * Spec::kDilationH <
                                       Input::kH;
  static constexpr bool kHasColumns =
      Spec::kPaddingW == 0 &&
      (Output::kW - Spec::kVector) * Spec::kStrideW + kLoaded <= Input::kW;
};

// Reach::kAtOnce rows of the input, from row `top` and column `left` on;
// `outside` beyond its edges. Accesses are inside or outside as a whole; for
// those outside others stand in: no branch delays a load.
template <typename Spec, typename Index>
struct PoolRows {
  using Reach = PoolReach<Spec>;
  using Input = typename Spec::Input;
  static constexpr int kVector = Spec::kVector;
  float elements[Reach::kAtOnce][Reach::kLoaded];

  __device__ PoolRows(const typename Spec::Tensors& t,
                      const Point<Index>& output, Index top, Index left,
                      bool is_aligned, float outside) {
    const auto point = [&](int row, int access) {
      const Index h = top + row * Spec::kDilationH;
      const Index w = left + access * kVector;
      return PointAt<Input, Index>(
          output.n, output.c, Reach::kHasRows ? h : Inside<Input::kH - 1>(h),
          Reach::kHasColumns ? w : Inside<Input::kW - kVector>(w));
    };
    Read(t, point, is_aligned);
#pragma unroll
    for (int row = 0; row < Reach::kAtOnce; ++row) {
      const Index h = top + row * Spec::kDilationH;
      const bool has_row = Reach::kHasRows || (h >= 0 && h < Input::kH);
#pragma unroll
      for (int k = 0; k < Reach::kLoaded; ++k) {
        const Index w = left + k / kVector * kVector;
        const bool is_inside =
            has_row && (Reach::kHasColumns || (w >= 0 && w < Input::kW));
        elements[row][k] = is_inside ? elements[row][k] : outside;
      }
    }
  }

 private:
  template <Index kLast>
  __device__ static Index Inside(Index at) {
    return max(min(at, kLast), static_cast<Index>(0));
  }

  template <typename PointOfAccess>
  __device__ void Read(const typename Spec::Tensors& t,
                       const PointOfAccess& point, bool is_aligned) {
    if constexpr (kVector == 1) {
#pragma unroll
      for (int row = 0; row < Reach::kAtOnce; ++row) {
#pragma unroll
        for (int access = 0; access < Reach::kAccesses; ++access) {
          elements[row][access] = Spec::Read(t, point(row, access));
        }
      }
    } else {
      typename Spec::template InputHeld<kVector> held[Reach::kAtOnce]
                                                     [Reach::kAccesses];
      const auto fetch = [&](bool is_whole) {
#pragma unroll
        for (int row = 0; row < Reach::kAtOnce; ++row) {
#pragma unroll
          for (int access = 0; access < Reach::kAccesses; ++access) {
            Spec::FetchInputHeld(t, point(row, access), is_whole,
                                 &held[row][access]);
          }
        }
      };
      if (is_aligned) {
        fetch(true);
      } else {
        fetch(false);
      }
#pragma unroll
      for (int row = 0; row < Reach::kAtOnce; ++row) {
#pragma unroll
        for (int k = 0; k < Reach::kLoaded; ++k) {
          const auto first = point(row, k / kVector);
          elements[row][k] =
              Spec::Read(held[row][k / kVector],
                         VectorPointOf<Input, kVector>(first, k % kVector));
        }
      }
    }
  }
};

// The largest, or the sum, of the windows of the outputs from `first` on.
template <typename Spec, typename Index>
__device__ void PoolVector(const typename Spec::Tensors& t,
                           const Point<Index>& first, bool is_aligned,
                           float (&results)[Spec::kTall][Spec::kVector]) {
  using Reach = PoolReach<Spec>;
  const float nothing = Spec::kMax ? -__int_as_float(0x7f800000) : 0.0f;
  const Index top = first.h * Spec::kStrideH - Spec::kPaddingH;
  const Index left = first.w * Spec::kStrideW - Spec::kPaddingW - Reach::kEarly;
#pragma unroll
  for (int y = 0; y < Spec::kTall; ++y) {
#pragma unroll
    for (int x = 0; x < Spec::kVector; ++x) results[y][x] = nothing;
  }
#pragma unroll(Spec::kRowsAtOnce)
  for (int from = 0; from < Reach::kRows; from += Reach::kAtOnce) {
    const PoolRows<Spec, Index> rows(t, first, top + from * Spec::kDilationH,
                                     left, is_aligned, nothing);
#pragma unroll
    for (int row = 0; row < Reach::kAtOnce; ++row) {
#pragma unroll
      for (int x = 0; x < Spec::kVector; ++x) {
        float of_row = nothing;
#pragma unroll
        for (int kx = 0; kx < Spec::kKernelW; ++kx) {
          const float element =
              rows.elements[row][Reach::kEarly + x * Spec::kStrideW +
                                 kx * Spec::kDilationW];
          of_row = Spec::kMax ? Maximum(of_row, element) : of_row + element;
        }
#pragma unroll
        for (int y = 0; y < Spec::kTall; ++y) {
          const int ky = from + row - y * Spec::kStrideH;
          if (Spec::kTall > 1 && (ky < 0 || ky >= Spec::kKernelH)) continue;
          results[y][x] = Spec::kMax ? Maximum(results[y][x], of_row)
                                     : results[y][x] + of_row;
        }
      }
    }
  }
}

// One for each thread.
template <typename Spec>
struct PoolTallStrips {
  using Output = typename Spec::Output;
  static constexpr typename Spec::Index kN = Output::kN, kC = Output::kC;
  static constexpr typename Spec::Index kH =
      (Output::kH + Spec::kTall - 1) / Spec::kTall;
  static constexpr typename Spec::Index kW = Output::kW;
};

template <typename Spec, typename Index>
__device__ void WritePool(const typename Spec::Tensors& t,
                          const Point<Index>& first, bool is_aligned,
                          const float (&results)[Spec::kVector]) {
  using Output = typename Spec::Output;
  constexpr int kVector = Spec::kVector;
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

template <typename Spec>
__device__ void PoolSmallWindows(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  using Output = typename Spec::Output;
  using Strips = PoolTallStrips<Spec>;
  constexpr int kVector = Spec::kVector;
  constexpr int kTall = Spec::kTall;
  static_assert(Output::kW % kVector == 0 && Spec::Input::kW % kVector == 0,
                "Vectors must not cross the end of a row.");
  static_assert(kTall == 1 || (Spec::kDilationH == 1 && Spec::kRowsAtOnce > 1 &&
                               PoolReach<Spec>::kLoadsAll),
                "Windows below each other are of rows that are there at once.");
  bool is_aligned = true;
  if constexpr (kVector > 1) {
    is_aligned = Spec::IsAligned(t) && Spec::IsInputAligned(t);
  }
#pragma unroll 1
  for (Index i = GridStart<Index>(BlockInMemory<Spec>());
       i < kNumElements<Strips> / kVector; i += GridStride<Index>()) {
    const auto strip = PointOf<Strips>(i * kVector);
    const auto first =
        PointAt<Output, Index>(strip.n, strip.c, strip.h * kTall, strip.w);
    float results[kTall][kVector];
    PoolVector<Spec>(t, first, is_aligned, results);
#pragma unroll
    for (int y = 0; y < kTall; ++y) {
      if (Output::kH % kTall != 0 && first.h + y >= Output::kH) break;
      const Point<Index> at = {first.i + y * Output::kW, first.n, first.c,
                               first.h + y, first.w};
      WritePool<Spec>(t, at, is_aligned, results[y]);
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
