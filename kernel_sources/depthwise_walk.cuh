// Depthwise convolution of stride and dilation 1 by walks: a thread goes down
// kTileW columns of one channel, from one row of outputs to the next, kTileH of
// them. It loads each row of the input once, and adds it to the sums of all
// kKernelH rows of outputs that it touches. The sums of the uppermost are then
// complete, and those of the others take a place less: the first product of a
// row reads the sum from one place and leaves it in the other, so that this
// costs no instruction and the code is that of a single row. Above and below
// the image nothing is added.
//
//   kiln::WalkAll<Spec>(t, is_aligned);
#ifndef KILN_KERNEL_SOURCES_DEPTHWISE_WALK_CUH_
#define KILN_KERNEL_SOURCES_DEPTHWISE_WALK_CUH_

#include "depthwise_taps.cuh"
#include "opaque.cuh"

namespace kiln {

// Element `k` of a word.
__device__ inline float FloatOf(unsigned word, int k, float) {
  return __uint_as_float(word);
}
__device__ inline float FloatOf(unsigned word, int k, BFloat16) {
  return __uint_as_float(k == 0 ? word << 16 : word & 0xffff0000u);
}
__device__ inline float FloatOf(unsigned word, int k, Float16) {
  float low, high;
  asm("{\n\t.reg .b16 low, high;\n\t"
      "mov.b32 {low, high}, %2;\n\t"
      "cvt.f32.f16 %0, low;\n\t"
      "cvt.f32.f16 %1, high;\n\t}"
      : "=f"(low), "=f"(high)
      : "r"(word));
  return k == 0 ? low : high;
}

__device__ inline unsigned BitsOf(float value) {
  return __float_as_uint(value);
}
__device__ inline unsigned BitsOf(Float16 value) { return value.bits; }
__device__ inline unsigned BitsOf(BFloat16 value) { return value.bits; }

// The accesses of a row of the input under kTileW outputs.
template <typename Spec>
struct WalkRow {
  using Index = typename Spec::Index;
  using InputType = typename Spec::InputType;
  static constexpr int kVector = Spec::kVector;
  // Loads begin at a whole access: this many columns before the first that is
  // needed.
  static constexpr int kEarly = (kVector - Spec::kPaddingW % kVector) % kVector;
  static constexpr int kColumns = kEarly + Spec::kTileW + Spec::kKernelW - 1;
  static constexpr int kAccesses = (kColumns + kVector - 1) / kVector;

  static constexpr int kBytes = kVector * static_cast<int>(sizeof(InputType));
  // Whole words, of which elements are taken when they are needed: the compiler
  // would take them out when they come, and keep a register for each.
  static constexpr int kWords = kBytes < 4 ? 1 : kBytes / 4;  // of an access
  static constexpr int kHalves = kBytes < 4 ? 1 : 4 / sizeof(InputType);

  alignas(kMaxAccessBytes) unsigned words[kAccesses * kWords] = {};

  __device__ float operator[](int column) const {
    const int at = kEarly + column;
    return FloatOf(words[at / kHalves], at % kHalves, InputType{});
  }

  // Whether the column `offset` behind `left`, where the first access is, is
  // one of the input's: known of those that have outputs.
  static __device__ bool IsInside(Index left, int offset) {
    const int of_outputs = offset - kEarly - Spec::kPaddingW;
    const bool is_in_front = of_outputs < 0 && left + offset < 0;
    constexpr bool kHaveOutputs = Spec::Output::kW <= Spec::Input::kW &&
                                  Spec::Output::kW % Spec::kTileW == 0;
    const bool is_behind = !(kHaveOutputs && of_outputs < Spec::kTileW) &&
                           left + offset >= Spec::Input::kW;
    return !is_in_front && !is_behind;
  }

  // Takes what lies from `from` on, which is column `left` of a row. Accesses
  // are inside or outside as a whole; what is outside stays 0, for a thread's
  // columns are the same in all rows.
  __device__ void Take(const InputType* from, Index left, bool is_aligned) {
    if (kVector > 1 && !is_aligned) return TakeElements(from, left);
#pragma unroll
    for (int k = 0; k < kAccesses; ++k) {
      if (IsInside(left, k * kVector)) {
        const auto* access =
            reinterpret_cast<const Access<kBytes>*>(from + k * kVector);
        if constexpr (kBytes < 4) {
          words[k] = *access;
        } else {
          reinterpret_cast<Access<kBytes>*>(words)[k] = *access;
        }
      }
    }
  }

  // The same where accesses are not aligned. A loop, or it would take slots
  // even where it is not made.
  __device__ void TakeElements(const InputType* from, Index left) {
    constexpr int kLast = kAccesses * kWords - 1;
#pragma unroll 1
    for (int k = 0; k < kAccesses * kVector; ++k) {
      unsigned bits = 0;
      if (left + k >= 0 && left + k < Spec::Input::kW) bits = BitsOf(from[k]);
#pragma unroll
      for (int j = 0; j <= kLast; ++j) {
        const unsigned next = j < kLast ? words[j + 1] : bits;
        words[j] = kHalves == 2 ? __funnelshift_r(words[j], next, 16) : next;
      }
    }
  }
};

// The filters of the channels that a block's threads walk through, in shared
// memory: a thread's neighbours have few channels, and lanes that load from
// many places wait for each other.
template <typename Spec>
struct BlockFilters {
  using Index = typename Spec::Index;
  using Tiles = typename Spec::Tiles;
  static constexpr int kTaps = Spec::kKernelH * Spec::kKernelW;
  static constexpr int kThreads = Spec::kThreads;
  static constexpr Index kOfPlane = Tiles::kH * Tiles::kW;  // threads
  static constexpr int kPlanes =
      static_cast<int>((kThreads - 1 + kOfPlane - 1) / kOfPlane + 1);

  float taps[kPlanes * kTaps];
  bool are_finite;

  // To be followed by Load.
  __device__ void Begin() {
    if (threadIdx.x == 0) are_finite = true;
  }

  // Loads those of the block that begins with walk `first`, and notes if one of
  // their taps, or of those before, is not finite. All threads must come.
  __device__ void Load(const typename Spec::Tensors& t, Index first) {
    constexpr Index kAll = Tiles::kC * kTaps;
    const Index from = first / kOfPlane % Tiles::kC * kTaps;
    __syncthreads();  // Nobody reads those before any more.
    float zero = 0.0f;
    for (int k = threadIdx.x; k < kPlanes * kTaps; k += kThreads) {
      Index i = from + k;
      if constexpr (kPlanes <= Tiles::kC) {
        if (i >= kAll) i -= kAll;
      } else {
        i %= kAll;
      }
      taps[k] = kiln::Load(t.weight, i);
      zero = fmaf(taps[k], 0.0f, zero);  // NaN from one that is not finite on
    }
    if (zero != 0.0f) are_finite = false;
    __syncthreads();
  }

  // Those of walk `i`.
  __device__ const float* Of(Index first, Index i) const {
    return taps + (i / kOfPlane - first / kOfPlane) * kTaps;
  }
};

template <typename Spec>
class DepthwiseWalk {
 public:
  using Index = typename Spec::Index;
  using Tensors = typename Spec::Tensors;

  // The outputs of kTileH rows, or as many as there are, from `first` on. Zeros
  // stand in for the padding if the filter's taps `are_finite`; else each
  // product is made only where it should be.
  static __device__ void Go(const Tensors& t, const Point<Index>& first,
                            const float* filter, bool are_finite,
                            bool is_aligned) {
    DepthwiseWalk walk(t, first, filter, Opaque(is_aligned));
    if (are_finite) {
      walk.Approach();
      walk.WalkDown(t);
    }
    walk.GoOn(t, !are_finite);
  }

 private:
  using Input = typename Spec::Input;
  using Output = typename Spec::Output;
  using InputType = typename Spec::InputType;
  static constexpr int kRows = Spec::kKernelH;  // of sums
  static constexpr int kColumns = Spec::kTileW + Spec::kKernelW - 1;
  // Rows of 16 bits are converted when their turn comes, so that their place is
  // free for one that comes later; of 32 bits they are used where they lie.
  static constexpr bool kConverts = sizeof(InputType) < 4;
  static constexpr int kAhead = Spec::kRowsAhead;  // loaded so early
  static constexpr int kPlaces = kConverts ? kAhead : 2;
  static_assert(kAhead == 1 || (kConverts && kAhead == 2),
                "There is a place for each row.");
  static_assert(Spec::kStrideH == 1 && Spec::kStrideW == 1 &&
                    Spec::kDilationH == 1 && Spec::kDilationW == 1,
                "A walk goes from each row to the next.");

  // Above the image there is nothing to add to sums that are still zero.
  __device__ DepthwiseWalk(const Tensors& t, const Point<Index>& first,
                           const float* filter, bool is_aligned)
      : at_(first),
        end_(min(first.h + Spec::kTileH, static_cast<Index>(Output::kH))),
        h_(first.h - Spec::kPaddingH),
        end_h_(min(end_ + kBelow, static_cast<Index>(Input::kH))),
        left_(first.w - Spec::kPaddingW - WalkRow<Spec>::kEarly),
        is_aligned_(is_aligned) {
    skipped_ = min(max(-h_, Index{0}), Index{kRows - 1});
    h_ += skipped_;
    from_ =
        t.input + (PlaneOf<Spec>(first) * Input::kH + h_) * Input::kW + left_;
#pragma unroll
    for (int k = 0; k < kAhead; ++k) Take(k, &rows_[k]);
#pragma unroll
    for (int k = 0; k < kRows * Spec::kKernelW; ++k) filter_[k] = filter[k];
  }

  // The row of the input that completes one of outputs is so far below it.
  static constexpr int kBelow = kRows - 1 - Spec::kPaddingH;

  // Takes the next row, which is `ahead` behind h_, if anybody needs it.
  __device__ void Take(int ahead, WalkRow<Spec>* row) {
    const Index h = h_ + ahead;
    const bool is_below_top = Spec::kPaddingH < kRows || h >= 0;
    if (is_below_top && h < end_h_) row->Take(from_, left_, is_aligned_);
    from_ += Input::kW;
  }

  // Adds the next row, which is in rows_[kPlace], to the sums.
  template <int kPlace>
  __device__ void Step() {
    float row[kColumns];
#pragma unroll
    for (int x = 0; x < kColumns; ++x) row[x] = rows_[kPlace][x];
    Take(kAhead, &rows_[kConverts ? kPlace : 1 - kPlace]);
    Add(row);
    ++h_;
  }

  // Adds the products of a row to the sums, which take a place less.
  __device__ void Add(const float (&row)[kColumns]) {
#pragma unroll
    for (int kx = 0; kx < Spec::kKernelW; ++kx) {
#pragma unroll
      for (int y = 0; y < kRows; ++y) {
        const float tap = filter_[(kRows - 1 - y) * Spec::kKernelW + kx];
        const float* from = sums_[kx == 0 ? y + 1 : y];
#pragma unroll
        for (int x = 0; x < Spec::kTileW; ++x) {
          sums_[y][x] = fmaf(row[x + kx], tap, from[x]);
        }
      }
    }
  }

  // Goes past a row outside of the image.
  __device__ void Shift() {
#pragma unroll
    for (int y = 0; y < kRows; ++y) {
#pragma unroll
      for (int x = 0; x < Spec::kTileW; ++x) sums_[y][x] = sums_[y + 1][x];
    }
  }

  // Goes through the rows that are under the first outputs, but for the last.
  __device__ void Approach() {
    Index k = skipped_;
#pragma unroll 1
    for (; k < kRows - 1 && h_ < end_h_; ++k) {
      Step<0>();
      const WalkRow<Spec> next = rows_[kPlaces - 1];
      rows_[kPlaces - 1] = rows_[0];
      rows_[0] = next;
    }
#pragma unroll 1
    for (; k < kRows - 1; ++k) Shift();
  }

  // Goes on to the end of the image, and finishes a row of outputs for each of
  // the input.
  __device__ void WalkDown(const Tensors& t) {
    if (h_ >= end_h_) return;
#pragma unroll 1
    while (true) {
      Step<0>();
      Finish(t);
      if (h_ >= end_h_) break;
      if (kPlaces == 1) continue;
      Step<kPlaces - 1>();
      Finish(t);
      if (h_ >= end_h_) break;
    }
  }

  // Finishes the rows of outputs that are left, which have the end of the image
  // above their last row: all of them if their products are made with care.
  __device__ void GoOn(const Tensors& t, bool is_careful) {
#pragma unroll 1
    while (at_.h < end_) {
      Shift();
      if (is_careful) {
        float sums[1][Spec::kTileW];
        SumWithCare<Spec>(t, at_, sums);
#pragma unroll
        for (int x = 0; x < Spec::kTileW; ++x) sums_[0][x] = sums[0][x];
      }
      Finish(t);
    }
  }

  // What follows for the uppermost row of sums. Goes on to the next one.
  __device__ void Finish(const Tensors& t) {
#pragma unroll
    for (int x = 0; x < Spec::kTileW; x += Spec::kVector) {
      if (Output::kW % Spec::kTileW != 0 && at_.w + x >= Output::kW) continue;
      const Point<Index> first = {at_.i + x, at_.n, at_.c, at_.h, at_.w + x};
      FinishVector<Spec>(t, first, is_aligned_, sums_[0] + x);
    }
    at_.i += Output::kW;
    ++at_.h;
  }

  Point<Index> at_;        // the next outputs
  Index end_;              // of their rows
  Index h_;                // the row of the input that is added next
  Index end_h_;            // of those that are
  Index left_;             // its first access
  Index skipped_;          // rows above the image
  const InputType* from_;  // what is taken next
  bool is_aligned_;
  WalkRow<Spec> rows_[kPlaces];
  float filter_[Spec::kKernelH * Spec::kKernelW];
  float sums_[kRows + 1][Spec::kTileW] = {};  // the last stay zero
};

// All walks, in blocks of Spec::kThreads.
template <typename Spec>
__device__ void WalkAll(const typename Spec::Tensors& t, bool is_aligned) {
  using Index = typename Spec::Index;
  using Tiles = typename Spec::Tiles;
  using Output = typename Spec::Output;
  __shared__ BlockFilters<Spec> filters;
  filters.Begin();
  const Index stride = static_cast<Index>(gridDim.x) * Spec::kThreads;
#pragma unroll 1
  for (Index first = static_cast<Index>(blockIdx.x) * Spec::kThreads;
       first < kNumElements<Tiles>; first += stride) {
    filters.Load(t, first);
    const Index i = first + threadIdx.x;
    if (i >= kNumElements<Tiles>) continue;
    const auto place = PointOf<Tiles>(i);
    const auto at = PointAt<Output, Index>(
        place.n, place.c, place.h * Spec::kTileH, place.w * Spec::kTileW);
    DepthwiseWalk<Spec>::Go(t, at, filters.Of(first, i), filters.are_finite,
                            is_aligned);
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_DEPTHWISE_WALK_CUH_
