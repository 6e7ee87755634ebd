// Neighbouring elements, moved 16 bytes at a time. Element code is written for
// one element, with kiln::Load(t.input, at.i); instantiated for a struct whose
// whole tensors are Vectors, and a VectorPoint for `at`, the same code works
// on registers:
//
//   kiln::Vector<kiln::Float16, 8> x;
//   kiln::Fetch(tensor, i, is_aligned, &x);  // i a multiple of 8
//   const auto at = kiln::VectorPointOf<Shape, 8>(kiln::PointOf<Shape>(i), 2);
//   const float third = kiln::Load(x, at.i);
#ifndef KILN_KERNEL_SOURCES_VECTORS_CUH_
#define KILN_KERNEL_SOURCES_VECTORS_CUH_

#include "opaque.cuh"
#include "point.cuh"
#include "storage_types.cuh"

namespace kiln {

// The widest access of one thread.
constexpr int kMaxAccessBytes = 16;

template <typename T, int kCount>
struct Vector {
  alignas(kMaxAccessBytes) T elements[kCount];
};

// One access of a thread, as the machine's own type of that width.
template <int kBytes>
struct AccessType;
template <>
struct AccessType<2> {
  using Type = unsigned short;
};
template <>
struct AccessType<4> {
  using Type = unsigned;
};
template <>
struct AccessType<8> {
  using Type = uint2;
};
template <>
struct AccessType<16> {
  using Type = uint4;
};
template <int kBytes>
using Access = typename AccessType<kBytes>::Type;

// Loads kCount neighbours, 16 bytes an access if `tensor + i` allows that.
// kOnce: nobody reads them again, and caches give them up first.
template <bool kOnce = false, typename T, typename Index, int kCount>
__device__ void Fetch(const T* tensor, Index i, bool is_aligned,
                      Vector<T, kCount>* vector) {
  constexpr int kBytes = kCount * static_cast<int>(sizeof(T));
  constexpr int kAccess = kBytes < kMaxAccessBytes ? kBytes : kMaxAccessBytes;
  static_assert(kBytes % kAccess == 0, "Vectors are whole accesses.");
  if (is_aligned) {
#pragma unroll
    for (int k = 0; k < kBytes / kAccess; ++k) {
      const auto* from =
          reinterpret_cast<const Access<kAccess>*>(tensor + i) + k;
      auto* to = reinterpret_cast<Access<kAccess>*>(vector->elements) + k;
      if constexpr (kOnce) {
        *to = __ldcs(from);
      } else {
        *to = *from;
      }
    }
  } else {
#pragma unroll
    for (int k = 0; k < kCount; ++k) vector->elements[k] = tensor[i + k];
  }
}

// The same in less code. The other way is a loop, or its accesses would take
// their slots even where they are not made.
template <bool kOnce = false, typename T, typename Index, int kCount>
__device__ void FetchCompactly(const T* tensor, Index i, bool is_aligned,
                               Vector<T, kCount>* vector) {
  if (is_aligned) return Fetch<kOnce>(tensor, i, true, vector);
#pragma unroll 1
  for (int k = 0; k < kCount; ++k) {
#pragma unroll
    for (int j = 0; j + 1 < kCount; ++j) {
      vector->elements[j] = vector->elements[j + 1];
    }
    vector->elements[kCount - 1] = tensor[i + k];
  }
}

// Stores them likewise.
template <typename T, typename Index, int kCount>
__device__ void Put(const Vector<T, kCount>& vector, bool is_aligned, T* tensor,
                    Index i) {
  constexpr int kBytes = kCount * static_cast<int>(sizeof(T));
  constexpr int kAccess = kBytes < kMaxAccessBytes ? kBytes : kMaxAccessBytes;
  if (is_aligned) {
#pragma unroll
    for (int k = 0; k < kBytes / kAccess; ++k) {
      reinterpret_cast<Access<kAccess>*>(tensor + i)[k] =
          reinterpret_cast<const Access<kAccess>*>(vector.elements)[k];
    }
  } else {
#pragma unroll
    for (int k = 0; k < kCount; ++k) tensor[i + k] = vector.elements[k];
  }
}

// What becomes neighbours of a tensor, not rounded yet. Those of 16 bits are
// rounded two at a time.
template <typename T, int kCount>
struct Results {
  float elements[kCount];
};

template <typename T, typename Index, int kCount>
__device__ void Put(const Results<T, kCount>& results, bool is_aligned,
                    T* tensor, Index i) {
  Vector<T, kCount> vector;
  if constexpr (sizeof(T) == 2 && kCount % 2 == 0) {
    auto* pairs = reinterpret_cast<unsigned*>(vector.elements);
#pragma unroll
    for (int k = 0; k < kCount; k += 2) {
      // Opaque: else halves would be rounded apart for the sake of the way that
      // stores them apart.
      pairs[k / 2] = Opaque(
          RoundedPair(results.elements[k], results.elements[k + 1], T()));
    }
  } else {
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      FromFloat(results.elements[k], &vector.elements[k]);
    }
  }
  Put(vector, is_aligned, tensor, i);
}

// A position, and which element of a vector it is.
template <typename Index>
struct Lane {
  Index position;
  int k;
  __device__ operator Index() const { return position; }
};

// A position that runs with w, or with c.
template <typename Index>
__device__ Lane<Index> operator+(Index begin, const Lane<Index>& at) {
  return {begin + at.position, at.k};
}

template <typename T, int kCount, typename Index>
__device__ float Load(const Vector<T, kCount>& vector, Lane<Index> at) {
  return ToFloat(vector.elements[at.k]);
}

// Of a pair in one register, one instruction for each.
template <int kCount, typename Index>
__device__ float Load(const Vector<BFloat16, kCount>& vector, Lane<Index> at) {
  if constexpr (kCount % 2 == 0) {
    const auto* pairs = reinterpret_cast<const unsigned*>(vector.elements);
    const unsigned pair = pairs[at.k / 2];
    return __uint_as_float(at.k % 2 == 0 ? pair << 16 : pair & 0xffff0000u);
  } else {
    return ToFloat(vector.elements[at.k]);
  }
}

template <typename T, int kCount, typename Index>
__device__ void Store(Vector<T, kCount>& vector, Lane<Index> at, float value) {
  FromFloat(value, &vector.elements[at.k]);
}

template <typename T, int kCount, typename Index>
__device__ void Store(Results<T, kCount>& results, Lane<Index> at,
                      float value) {
  results.elements[at.k] = value;
}

// A kiln::Point of one element of a vector. `w` is a lane too, so that what
// runs along w alone can be held as a vector.
template <typename Index>
struct VectorPoint {
  Lane<Index> i;
  Index n, c, h;
  Lane<Index> w;
};

// The same where a pixel is alone, and vectors run with channels.
template <typename Index>
struct ChannelVectorPoint {
  Lane<Index> i;
  Index n;
  Lane<Index> c;
  Index h, w;
};

// Whether vectors of so many elements never cross the end of a channel.
template <typename Shape, int kCount>
constexpr bool kLieInChannels = Shape::kH* Shape::kW % kCount == 0;

// Whether the vector that begins at `first` lies in one channel. Only asked
// where no more than every fourth warp has one that does not, and works out
// both cases.
template <typename Shape, int kCount, typename Index>
__device__ bool LiesInChannel(Index first) {
  constexpr Index kChannel = Shape::kH * Shape::kW;
  if constexpr (kLieInChannels<Shape, kCount>) return true;
  if constexpr (kChannel < 4 * 32 * kCount) return false;
  return first / kChannel == (first + kCount - 1) / kChannel;
}

// Of the elements of a vector that begins at a multiple of kCount, so many side
// by side lie in one channel: a power of two.
template <typename Shape, int kCount>
constexpr int kShareChannel = (Shape::kH * Shape::kW | kCount) &
                              -(Shape::kH* Shape::kW | kCount);

// The point of element k of the vector that begins at `first`. Coordinates
// that elements of a vector share are computed once: where kInChannel, it lies
// in one channel.
template <typename Shape, int kCount,
          bool kInChannel = kLieInChannels<Shape, kCount>, typename Index>
__device__ auto VectorPointOf(const Point<Index>& first, int k) {
  using At = VectorPoint<Index>;
  if constexpr (Shape::kW % kCount == 0) {
    return At{{first.i + k, k}, first.n, first.c, first.h, {first.w + k, k}};
  } else if constexpr (Shape::kH * Shape::kW == 1 && Shape::kC % kCount == 0) {
    return ChannelVectorPoint<Index>{
        {first.i + k, k}, first.n, {first.c + k, k}, first.h, first.w};
  } else {
    constexpr int kShare = kShareChannel<Shape, kCount>;
    const Point<Index> own = PointOf<Shape>(first.i + k);
    const Point<Index> shared =
        kInChannel ? first : PointOf<Shape>(first.i + k / kShare * kShare);
    return At{{own.i, k}, shared.n, shared.c, own.h, {own.w, k}};
  }
}

// Whether 16-byte accesses may start at all of these addresses.
template <typename... Pointers>
__device__ bool AreAligned(Pointers... pointers) {
  const unsigned long long bits =
      (... | reinterpret_cast<unsigned long long>(pointers));
  return bits % kMaxAccessBytes == 0;
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_VECTORS_CUH_
