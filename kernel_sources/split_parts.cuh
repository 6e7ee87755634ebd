// How the rows of a matrix of f32 lie for linear.cu as parts of 16 bits
// (conv_halves.cuh says what these are): for each part, for each chunk of 64
// numbers of a row, for each row its numbers of the chunk, swizzled as tensor
// cores read them, so that rows that follow each other are one copy. Behind the
// last number of a row there are zeros.
#ifndef KILN_KERNEL_SOURCES_SPLIT_PARTS_CUH_
#define KILN_KERNEL_SOURCES_SPLIT_PARTS_CUH_

#include "conv_halves.cuh"
#include "storage_types.cuh"

namespace kiln {

template <int kRows, int kNumbers, int kHalves>
struct SplitParts {
  static constexpr int kChunk = 64;
  static constexpr int kOctetsOfChunk = kChunk / 8;
  static constexpr int kChunks = (kNumbers + kChunk - 1) / kChunk;
  static constexpr int kOctets = kChunks * kOctetsOfChunk;  // of a row
  static constexpr long long kPart =
      static_cast<long long>(kChunks) * kRows * kOctetsOfChunk;

  // Of eight numbers of the first part.
  static __device__ uint4* PlaceOf(Float16* parts, int row, int octet) {
    const long long line =
        static_cast<long long>(octet / kOctetsOfChunk) * kRows + row;
    return reinterpret_cast<uint4*>(parts) + line * kOctetsOfChunk +
           (octet % kOctetsOfChunk ^ row % 8);
  }
  // Of four.
  static __device__ uint2* PlaceOfFour(Float16* parts, int row, int four) {
    return reinterpret_cast<uint2*>(PlaceOf(parts, row, four / 2)) + four % 2;
  }

  // Rounds scaled numbers to nearest. kAreFinite: all of them are.
  template <bool kAreFinite>
  static __device__ void Store(const float (&x)[8], uint4* to) {
    unsigned large[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      large[i] = RoundedPair(x[2 * i], x[2 * i + 1], Float16());
    }
    *to = make_uint4(large[0], large[1], large[2], large[3]);
    if constexpr (kHalves == 2) {
      unsigned rests[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float first = x[2 * i];
        const float second = x[2 * i + 1];
        rests[i] = kAreFinite
                       ? RoundedPair(first - HalfOf<0>(large[i]),
                                     second - HalfOf<1>(large[i]), Float16())
                       : RestsOf(first, second, large[i]);
      }
      to[kPart] = make_uint4(rests[0], rests[1], rests[2], rests[3]);
    }
  }
  static __device__ void Store(const float (&x)[4], uint2* to) {
    const uint2 large = Rounded(x);
    *to = large;
    if constexpr (kHalves == 2) {
      to[2 * kPart] = make_uint2(RestsOf(x[0], x[1], large.x),
                                 RestsOf(x[2], x[3], large.y));
    }
  }

  // Has parts of a number with its sign, that are not 0 unless it is.
  static __device__ void StoreOfOneSign(const float (&x)[4], uint2* to) {
    float large[4];
    float small[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float2 parts = PartsOfOneSign(x[k]);
      const bool rounds = kHalves == 1 && fabsf(x[k]) > fabsf(parts.x);
      large[k] = rounds ? x[k] : parts.x;
      small[k] = parts.y;
    }
    *to = Rounded(large);
    if constexpr (kHalves == 2) to[2 * kPart] = Rounded(small);
  }

 private:
  static __device__ uint2 Rounded(const float (&x)[4]) {
    return make_uint2(RoundedPair(x[0], x[1], Float16()),
                      RoundedPair(x[2], x[3], Float16()));
  }
};

// The magnitude's bits of a finite number; else 0.
__device__ inline unsigned FiniteMagnitude(float x) {
  const unsigned bits = MagnitudeBits(x);
  return bits < kInfinityBits ? bits : 0;
}

// The largest of kLanes lanes; called by whole warps.
template <int kLanes>
__device__ unsigned LargestOfLanes(unsigned most) {
#pragma unroll
  for (int mask = 1; mask < kLanes; mask *= 2) {
    most = max(most, __shfl_xor_sync(~0u, most, mask));
  }
  return most;
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_SPLIT_PARTS_CUH_
