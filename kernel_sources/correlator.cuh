// Sums the correlations of rows of an image (correlate.cu) on tensor cores:
// rows of sixteen are taps with the channels of one row of pixels or one above
// it, columns the taps of the newest row, and what is summed over are pixels.
#ifndef KILN_KERNEL_SOURCES_CORRELATOR_CUH_
#define KILN_KERNEL_SOURCES_CORRELATOR_CUH_

#include "correlated_rows.cuh"
#include "opaque.cuh"
#include "ptx_halves.cuh"
#include "ptx_matrix.cuh"

namespace kiln {

// The correlations of a block's columns, sixteen of them for each warp.
template <typename Spec>
class Correlator {
 public:
  using Extents = Correlations<Spec>;
  using Rows = RoundedRows<Spec>;
  static constexpr int kWarps = 8;  // one for each channel, too
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kFours = Extents::kFloats / 4;
  static constexpr int kFoursOfPair = Spec::kTapsW * 32;

  struct Shared {
    Rows rows;
    float4 sums[kWarps][kFoursOfPair];
    unsigned magnitudes[kWarps];
  };

  // Of the rows from `first` to the one before `end`, and of those above them
  // what these need.
  __device__ Correlator(const typename Spec::Tensors& t, int image,
                        int first_column, int first, int end, Shared* shared)
      : first_(Opaque(first)),
        row_(max(first - Extents::kEdges, 0)),
        end_(Opaque(end)),
        shared_(*shared),
        is_second_(Opaque(threadIdx.x / 8 % 2 == 1)),
        constants_(&shared->rows.constants[0][Opaque(threadIdx.x) % 8]),
        to_tap_(Opaque(OfLane(threadIdx.x / 16 % 2))),
        to_pair_(Opaque(OfLane(threadIdx.x / 16 % 2) +
                        threadIdx.x / 8 % 2 * kOfTap)),
        to_newest_(Opaque(OfLane(threadIdx.x / 8 % 2))),
        to_newest_two_(Opaque(OfLane(threadIdx.x / 8 % 2) +
                              threadIdx.x / 16 % 2 * kOfTap)),
        loader_(t, image, first_column, row_, end, &shared->rows) {
    for (int i = threadIdx.x; i < sizeof(shared_.rows.none) / 16;
         i += kThreads) {
      (&shared_.rows.none[0][0][0])[i] = make_uint4(0, 0, 0, 0);
    }
    if (threadIdx.x < 16) {
      const unsigned one = threadIdx.x == 0 ? 0x3c003c00u : 0u;
      (&shared_.rows.constants[0][0])[threadIdx.x] =
          make_uint4(one, one, one, one);
    }
  }

  // Leaves those of each part, from `part` on, at `to`, and their scales at
  // `scales`.
  __device__ void Run(int part, float4* to, float* scales) {
    loader_.Send();
    ChangeScale();
    Store(0);
    int slot = 0;
    int next = Opaque(Extents::FirstOf(part + 1));
    const uint4* rows[Spec::kTapsH];  // by lag
    for (auto& row : rows) row = &shared_.rows.none[0][0][0];
#pragma unroll 1
    while (true) {
      loader_.Send();
#pragma unroll 1
      for (int i = 0; i < Rows::kBatch; ++i, ++row_) {
        if (row_ == next) {
          Leave(to, scales++);
          if (row_ == end_) return;
          ++part;
          next = Opaque(Extents::FirstOf(part + 1));
          to += kFours;
        }
#pragma unroll
        for (int lag = Spec::kTapsH - 1; lag > 0; --lag) {
          rows[lag] = rows[lag - 1];
        }
        rows[0] = &shared_.rows.units[slot + i][0][0][0];
        Multiply(rows, row_ >= first_);
      }
      slot = slot + Rows::kBatch == Rows::kRing ? 0 : slot + Rows::kBatch;
      Store(slot);
    }
  }

 private:
  static constexpr float kNoScale = 3e38f;  // larger than any
  static constexpr int kOfTap = 8 * Rows::kPitch;
  static constexpr int kTwos = Spec::kTapsW / 2;  // pairs of a row's taps

  // Where the lane's row of a warp's matrix begins, behind a tap's first.
  static __device__ int OfLane(int half) {
    return threadIdx.x % 8 * Rows::kPitch + threadIdx.x / 32 * 2 + half;
  }

  // The rows that were sent for, for all warps to see. None may be multiplied
  // any more that was in their place.
  __device__ void Store(int slot) {
    if (!__syncthreads_or(!loader_.Store(slot, scale_))) return;
    if (!ChangeScale()) return;  // of what is no finite number
    loader_.Store(slot, scale_);
    __syncthreads();
  }

  // Chooses the scale for the rows that were sent for; whether it is smaller.
  __device__ bool ChangeScale() {
    const unsigned most = max(loader_.Most(), MagnitudeBits(loader_.pivot()));
    const unsigned of_warp = __reduce_max_sync(~0u, most);
    if (threadIdx.x % 32 == 0) {
      shared_.magnitudes[threadIdx.x / 32] = of_warp;
    }
    __syncthreads();
    unsigned all = 0;
#pragma unroll
    for (const unsigned other : shared_.magnitudes) all = max(all, other);
    const float before = scale_;
    scale_ = fminf(before, PowerOfTwo(ScaleExponent(all)));
    if (scale_ == before) return false;
    if (before == kNoScale) return true;
    ScaleRows(scale_ * InverseOfPower(before));
    __syncthreads();
    return true;
  }

  // Those that were stored, and what has come of them.
  __device__ void ScaleRows(float factor) {
    Scale(factor);
#pragma unroll
    for (auto& row : twos_) {
#pragma unroll
      for (uint4& two : row) {
        two = make_uint4(Scaled(two.x, factor), Scaled(two.y, factor),
                         Scaled(two.z, factor), Scaled(two.w, factor));
      }
    }
    constexpr int kWords = sizeof(shared_.rows.units) / 4;
    auto* const words = reinterpret_cast<unsigned*>(shared_.rows.units);
#pragma unroll 1
    for (int i = threadIdx.x; i < kWords; i += kThreads) {
      words[i] = Scaled(words[i], factor);
    }
  }
  static __device__ unsigned Scaled(unsigned pair, float factor) {
    return RoundedPair(HalfOf<0>(pair) * factor, HalfOf<1>(pair) * factor,
                       Float16());
  }

  // The products of the first of `rows`, and of those above it, with the first,
  // where it counts.
  __device__ void Multiply(const uint4* const (&rows)[Spec::kTapsH],
                           bool counts) {
#pragma unroll
    for (int lag = Spec::kTapsH - 1; lag >= 0; --lag) {
#pragma unroll
      for (int two = 0; two < kTwos; ++two) {
        twos_[lag][two] =
            lag > 0 ? twos_[max(lag, 1) - 1][two]
                    : ptx::LoadMatrices(rows[0] + 2 * two * kOfTap + to_pair_);
      }
    }
    if (!counts) return;
    uint2 newest[Spec::kTapsW];
#pragma unroll
    for (int tap = 0; tap < Spec::kTapsW; tap += 2) {
      const bool are_two = tap + 1 < Spec::kTapsW;
      const uint4 two = ptx::LoadMatrices(
          rows[0] + tap * kOfTap + (are_two ? to_newest_two_ : to_newest_));
      newest[tap] = make_uint2(two.x, two.y);
      if (are_two) newest[tap + 1] = make_uint2(two.z, two.w);
    }
#pragma unroll
    for (int pair = 0; pair < Extents::kPairs; ++pair) {
      const bool are_two = pair < Spec::kTapsH * kTwos;
      const uint4 x = are_two
                          ? twos_[pair / max(kTwos, 1)][pair % max(kTwos, 1)]
                          : ptx::LoadMatrices(PlaceOfPair(rows, 2 * pair));
      const unsigned both[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
      for (int tap = 0; tap < Spec::kTapsW; ++tap) {
        ptx::AddProductOfHalves(products_[pair][tap], both, newest[tap].x,
                                newest[tap].y);
      }
    }
  }

  // The lane's row of the matrices of two eights, from `eight` on.
  __device__ const uint4* PlaceOfPair(const uint4* const (&rows)[Spec::kTapsH],
                                      int eight) const {
    return is_second_ ? PlaceOf(rows, eight + 1) : PlaceOf(rows, eight);
  }
  __device__ const uint4* PlaceOf(const uint4* const (&rows)[Spec::kTapsH],
                                  int eight) const {
    if (Extents::IsTap(eight)) {
      return rows[Extents::LagOf(eight)] + Extents::TapOf(eight) * kOfTap +
             to_tap_;
    }
    return constants_ + (eight == Extents::kOnes ? 0 : 8);
  }

  // Correlations twice, for both of their factors, sums once.
  __device__ void Scale(float factor) {
#pragma unroll
    for (int pair = 0; pair < Extents::kPairs; ++pair) {
#pragma unroll
      for (int tap = 0; tap < Spec::kTapsW; ++tap) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float& product = products_[pair][tap][i];
          product *= factor;
          if (2 * pair + i / 2 != Extents::kOnes) product *= factor;
        }
      }
    }
  }

  // Those since the last time, of all warps.
  __device__ void Leave(float4* to, float* scale) {
    if (threadIdx.x == 0) *scale = scale_;
#pragma unroll
    for (int pair = 0; pair < Extents::kPairs; ++pair) {
      __syncthreads();
#pragma unroll
      for (int tap = 0; tap < Spec::kTapsW; ++tap) {
        float(&p)[4] = products_[pair][tap];
        shared_.sums[threadIdx.x / 32][tap * 32 + threadIdx.x % 32] =
            make_float4(p[0], p[1], p[2], p[3]);
        p[0] = p[1] = p[2] = p[3] = 0.0f;
      }
      __syncthreads();
      if (threadIdx.x < kFoursOfPair) {
        float4 sum = shared_.sums[0][threadIdx.x];
#pragma unroll
        for (int other = 1; other < kWarps; ++other) {
          const float4 x = shared_.sums[other][threadIdx.x];
          sum.x += x.x;
          sum.y += x.y;
          sum.z += x.z;
          sum.w += x.w;
        }
        to[pair * kFoursOfPair + threadIdx.x] = sum;
      }
    }
  }

  const int first_;
  int row_;
  const int end_;
  Shared& shared_;
  const bool is_second_;  // of two eights, the lane's row of a matrix
  const uint4* const constants_;
  const int to_tap_, to_pair_, to_newest_, to_newest_two_;  // of the lane
  RowLoader<Spec> loader_;
  float scale_ = kNoScale;
  uint4 twos_[Spec::kTapsH][kTwos > 0 ? kTwos : 1] = {};  // by lag
  float products_[Extents::kPairs][Spec::kTapsW][4] = {};
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CORRELATOR_CUH_
