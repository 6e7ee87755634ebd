// The input of a convolution as its correlations are taken of it
// (correlate.cu): rows that the filter's taps reach, padding included, of each
// value its difference from the channel's pivot, rounded.
#ifndef KILN_KERNEL_SOURCES_CORRELATED_ROWS_CUH_
#define KILN_KERNEL_SOURCES_CORRELATED_ROWS_CUH_

#include "async_copy.cuh"
#include "conv_halves.cuh"
#include "merge_lanes.cuh"
#include "opaque.cuh"
#include "ptx_halves.cuh"

namespace kiln {

// A row of the products has eight channels of one tap. Of the filter's taps a
// correlation has two rows of pixels, of which one lies `lag` rows above the
// other.
template <typename Spec>
struct Correlations {
  static constexpr int kTaps = Spec::kTapsH * Spec::kTapsW;
  // Taps, with the row above's lag, and a constant of one; in pairs, as a
  // product has sixteen rows.
  static constexpr int kPairs = (kTaps + 2) / 2;
  // Which eight rows of the products are those of a tap, and of the constant:
  // pairs of taps of one row of the filter, then the last taps where these are
  // odd, beside which the constant fills a pair.
  static constexpr int kInPairs = Spec::kTapsW / 2 * 2;
  static constexpr int kOthers = Spec::kTapsH * kInPairs;
  static constexpr int kOnes = kOthers + Spec::kTapsW % 2;
  static __device__ constexpr int EightOf(int lag, int tap) {
    if (tap < kInPairs) return lag * kInPairs + tap;
    return kOthers + (lag == 0 ? 0 : lag + 1);
  }
  static __device__ constexpr bool IsTap(int eight) {
    return eight != kOnes && eight <= kTaps;
  }
  static __device__ constexpr int LagOf(int eight) {
    if (eight < kOthers) return eight / (kInPairs > 0 ? kInPairs : 1);
    return eight == kOthers ? 0 : eight - kOthers - 1;
  }
  static __device__ constexpr int TapOf(int eight) {
    return eight < kOthers ? eight % (kInPairs > 0 ? kInPairs : 1) : kInPairs;
  }

  // Rows of pixels at each end that not all taps reach.
  static constexpr int kEdges = Spec::kTapsH - 1;
  // Parts of the rows, whose correlations are summed apart: strips, of which a
  // block has one, and each row of the edges, which those of the first and the
  // last have besides.
  static constexpr int kParts = Spec::kStrips + 2 * kEdges;
  static constexpr int kStripRows =
      (Spec::Output::kH - kEdges + Spec::kStrips - 1) / Spec::kStrips;
  static constexpr int kFloats = kPairs * Spec::kTapsW * 128;  // of a part
  // Behind the numbers of all parts, the scales of the values that they are of.
  static __device__ float* ScalesIn(float* correlations) {
    constexpr long long kAll =
        static_cast<long long>(Spec::Input::kN) * Spec::kColumnBlocks * kParts;
    return correlations + kAll * kFloats;
  }
  static_assert(Spec::Output::kH > kEdges, "There are rows of all taps.");
  static_assert(Spec::Input::kC <= 8 && Spec::kTapsW <= 3);

  static __device__ int FirstPartOf(int strip) {
    return strip == 0 ? 0 : kEdges + strip;
  }
  static __device__ int EndPartOf(int strip) {
    return strip == Spec::kStrips - 1 ? kParts : kEdges + strip + 1;
  }
  // The first row of a part; the one behind the last is the next one's.
  static __device__ constexpr int FirstOf(int part) {
    if (part < kEdges) return part;
    const int strip = part - kEdges;
    if (strip >= Spec::kStrips) {
      return Spec::Output::kH + strip - Spec::kStrips;
    }
    const int first = kEdges + strip * kStripRows;
    return first < Spec::Output::kH ? first
                                    : static_cast<int>(Spec::Output::kH);
  }
};

// What is subtracted from all values of a channel: by sixteen of them, so that
// the sums of squares of what is left are not much larger than its variance.
// Rounded to eleven bits, as values are. The same for all lanes of four.
template <typename Spec>
__device__ float PivotOfChannel(const typename Spec::Tensors& t, int image,
                                int channel) {
  using Input = typename Spec::Input;
  const bool exists = channel < Input::kC;
  const int row = (threadIdx.x % 4 * 2 + 1) * Input::kH / 8;
  const auto* const from =
      t.input +
      (static_cast<typename Spec::Index>(image) * Input::kC +
       (exists ? channel : 0)) *
          (Input::kH * Input::kW) +
      row * Input::kW;
  // In pairs, so that the mean of equal values is exact.
  const float sum = SumOfLanes<4>(
      (from[Input::kW / 8] * 0.0625f + from[3 * Input::kW / 8] * 0.0625f) +
      (from[5 * Input::kW / 8] * 0.0625f + from[7 * Input::kW / 8] * 0.0625f));
  const bool is_finite = MagnitudeBits(sum) < kInfinityBits;
  if (!exists || !is_finite) return 0.0f;
  const int exponent = ScaleExponent(MagnitudeBits(sum));
  const unsigned rounded =
      RoundedPair(sum * PowerOfTwo(exponent), 0.0f, Float16());
  return HalfOf<0>(rounded) * PowerOfTwo(-exponent);
}

// Where rows lie in shared memory: for each tap of a row of the filter the
// pixels that it meets, channel by channel, so that those of a matrix's row
// are 16 bytes. Channels are an odd number of these apart, in different banks.
template <typename Spec>
struct RoundedRows {
  static constexpr int kColumns = 128;  // of a block
  static constexpr int kPitch = kColumns / 8 + 1;
  static constexpr int kBatch = 4;  // rows that arrive together
  // Those that are multiplied, those that arrive, and those above the former.
  static constexpr int kRing =
      2 * kBatch + (Spec::kTapsH + kBatch - 2) / kBatch * kBatch;

  uint4 units[kRing][Spec::kTapsW][8][kPitch];
  uint4 none[Spec::kTapsW][8][kPitch];  // zeros, in the place of a row
  // Eight rows of the products that are no taps: of a constant, and of nothing.
  uint4 constants[2][8];
  // Rows as they arrive, each lane's four columns, and two behind the last.
  float4 arriving[8][kBatch][32];
  float2 beyond[8][kBatch];
};

// Brings an image's rows, from `first` on, to a block's 128 columns. A warp has
// a channel, and a lane four neighbouring columns, which are copied behind the
// threads' backs while those before are multiplied.
template <typename Spec>
class RowLoader {
 public:
  using Input = typename Spec::Input;
  using Rows = RoundedRows<Spec>;
  static constexpr int kBatch = Rows::kBatch;

  __device__ RowLoader(const typename Spec::Tensors& t, int image,
                       int first_column, int first, int end, Rows* rows)
      : channel_(threadIdx.x / 32),
        pivot_(PivotOfChannel<Spec>(t, image, channel_)),
        is_aligned_(reinterpret_cast<unsigned long long>(t.input) % 16 == 0),
        first_column_(first_column + threadIdx.x % 32 * 4 - Spec::kPaddingW),
        column_(Opaque(first_column_ < Input::kW ? first_column_ : 0)),
        y_(first - Spec::kPaddingH),
        end_(end - Spec::kPaddingH),
        rows_(*rows) {
    const bool exists = channel_ < Input::kC;
    const bool has_columns = !kWhole || first_column_ < Input::kW;
    end_ = Opaque(exists && has_columns ? min(end_, static_cast<int>(Input::kH))
                                        : 0);
    plane_ = t.input + (static_cast<typename Spec::Index>(image) * Input::kC +
                        (exists ? channel_ : 0)) *
                           (Input::kH * Input::kW);
    const int left = Spec::Output::kW - first_column - threadIdx.x % 32 * 4;
    masks_[0] = MaskOf(left);
    masks_[1] = MaskOf(left - 2);
  }

  __device__ float pivot() const { return pivot_; }

  // Sends for the next rows; zeros in the padding.
  __device__ void Send() {
    float4* const places = &rows_.arriving[channel_][0][threadIdx.x % 32];
    if (kWhole && is_aligned_) {
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        ptx::CopyAsync<16>(places + i * 32, RowAt(y_ + i) + column_,
                           IsRow(y_ + i));
      }
    } else {
#pragma unroll 1
      for (int i = 0; i < kBatch; ++i) {
        auto* const place = reinterpret_cast<float*>(places + i * 32);
#pragma unroll
        for (int k = 0; k < 4; ++k) SendOne(y_ + i, k, place + k);
      }
    }
    if constexpr (kHasBeyond) {
      if (threadIdx.x % 32 == 31) {
#pragma unroll 1
        for (int i = 0; i < kBatch; ++i) {
          SendOne(y_ + i, 4, &rows_.beyond[channel_][i].x);
          SendOne(y_ + i, 5, &rows_.beyond[channel_][i].y);
        }
      }
    }
    CommitCopies();
    y_ += kBatch;
  }

  // The largest finite magnitude of the rows that have been sent for, of the
  // lane.
  __device__ unsigned Most() const {
    WaitForCopies<0>();
    unsigned most = 0;
    const auto take = [&](float x) {
      const unsigned bits = MagnitudeBits(x);
      if (bits < kInfinityBits) most = max(most, bits);
    };
#pragma unroll 1
    for (int i = 0; i < kBatch; ++i) {
      const float4 x = rows_.arriving[channel_][i][threadIdx.x % 32];
      take(x.x);
      take(x.y);
      take(x.z);
      take(x.w);
      if constexpr (kHasBeyond) {
        if (threadIdx.x % 32 < 31) continue;
        take(rows_.beyond[channel_][i].x);
        take(rows_.beyond[channel_][i].y);
      }
    }
    return most;
  }

  // Lays them down from place `slot` on, scaled; whether all could be.
  __device__ bool Store(int slot, float scale) const {
    WaitForCopies<0>();
    const float scaled = pivot_ * scale;
    const unsigned pivots = RoundedPair(scaled, scaled, Float16());
    unsigned zeros = 0;
#pragma unroll
    for (int i = 0; i < kBatch; ++i) StoreRow(i, slot, scale, pivots, &zeros);
    return (zeros & 0x7fff7fff) == 0;
  }

 private:
  static constexpr bool kHasBeyond =
      Spec::kTapsW > 1 && Spec::Output::kW + Spec::kTapsW - 1 > Rows::kColumns;
  // Whether four columns lie in the input together, where accesses of 16 bytes
  // may begin, or none does.
  static constexpr bool kWhole = Input::kW % 4 == 0 && Spec::kPaddingW == 0;

  __device__ bool IsRow(int y) const {
    return (Spec::kPaddingH == 0 || y >= 0) && y < end_;
  }
  // Of the input; for one that is none, that of another.
  __device__ const float* RowAt(int y) const {
    const int inside = Spec::kPaddingH == 0 ? y : max(y, 0);
    return plane_ + min(inside, static_cast<int>(Input::kH - 1)) * Input::kW;
  }
  // The lane's `k`-th column.
  __device__ void SendOne(int y, int k, float* place) const {
    const int column = first_column_ + k;
    const bool is_column = column >= 0 && column < Input::kW;
    ptx::CopyAsync<4>(place, RowAt(y) + (is_column ? column : 0),
                      IsRow(y) && is_column);
  }

  __device__ void StoreRow(int i, int slot, float scale, unsigned pivots,
                           unsigned* zeros) const {
    const auto difference = [&](float a, float b) {
      const unsigned pair = ptx::SubtractHalves(
          RoundedPair(a * scale, b * scale, Float16()), pivots);
      *zeros = ptx::ZeroTimesHalves(pair, *zeros);
      return pair;
    };
    const float4 x = rows_.arriving[channel_][i][threadIdx.x % 32];
    const unsigned first = difference(x.x, x.y);
    const unsigned second = difference(x.z, x.w);
    StorePixels(slot + i, 0, first, second);
    if constexpr (Spec::kTapsW > 1) {
      unsigned third = __shfl_down_sync(~0u, first, 1);
      if constexpr (kHasBeyond) {
        if (threadIdx.x % 32 == 31) {
          const float2 beyond = rows_.beyond[channel_][i];
          third = difference(beyond.x, beyond.y);
        }
      }
      StorePixels(slot + i, 1, __byte_perm(first, second, 0x5432),
                  __byte_perm(second, third, 0x5432));
      if constexpr (Spec::kTapsW > 2) StorePixels(slot + i, 2, second, third);
    }
  }

  // Zeros where the output ends.
  __device__ void StorePixels(int slot, int tap, unsigned first,
                              unsigned second) const {
    if constexpr (Spec::Output::kW % Rows::kColumns != 0) {
      first &= masks_[0];
      second &= masks_[1];
    }
    auto* const row =
        reinterpret_cast<uint2*>(rows_.units[slot][tap][channel_]);
    row[threadIdx.x % 32] = make_uint2(first, second);
  }
  // Of a pair, of which `left` and more columns are there.
  static __device__ unsigned MaskOf(int left) {
    return left >= 2 ? ~0u : left == 1 ? 0xffffu : 0u;
  }

  const int channel_;
  const float pivot_;
  const bool is_aligned_;
  const int first_column_;  // of the lane's, in the input
  const int column_;        // the same, or another where that is none
  int y_;                   // of the next row, in the input
  int end_;                 // of rows that the warp has something of
  const float* plane_;
  unsigned masks_[2];  // of columns of the output
  Rows& rows_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CORRELATED_ROWS_CUH_
