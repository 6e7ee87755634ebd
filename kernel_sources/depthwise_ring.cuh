// What the threads of a block have in common that walk down images: the rows of
// the input that come next, and the filters of their channels, both in shared
// memory.
//
//   kiln::WalkRing<Spec> and kiln::WalkFilters<Spec>: see depthwise_walk.cuh
#ifndef KILN_KERNEL_SOURCES_DEPTHWISE_RING_CUH_
#define KILN_KERNEL_SOURCES_DEPTHWISE_RING_CUH_

#include "storage_types.cuh"
#include "vectors.cuh"

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

// How rows lie in the ring: planes one behind the other, each a vector for each
// thread, and zeros between them for what filters reach beyond the image. So
// nobody asks where it ends.
template <typename Spec>
struct WalkRow {
  using InputType = typename Spec::InputType;
  static constexpr int kVector = Spec::kVector;
  static constexpr int kPadding = Spec::kPaddingW;
  static constexpr int kBytes = kVector * static_cast<int>(sizeof(InputType));
  static constexpr int kHalves = 4 / sizeof(InputType);  // of a word
  static constexpr int kWords = kBytes / 4;              // of a vector
  static constexpr int kColumns = kVector + Spec::kKernelW - 1;
  // Neighbours that a thread's outputs reach.
  static constexpr int kBefore = (kPadding + kVector - 1) / kVector;
  static constexpr int kAfter =
      (Spec::kKernelW - 1 - kPadding + kVector - 1) / kVector;
  static constexpr int kGap = kBefore > kAfter ? kBefore : kAfter;
  static constexpr int kVectors = Spec::Tiles::kW;  // of a plane
  static constexpr int kPlanes = Spec::kThreads / kVectors;
  static constexpr int kPlaces = kGap + kPlanes * (kVectors + kGap);
  static_assert(kBytes == 8 || kBytes == 16, "Copies are whole accesses.");
  static_assert(kPlanes > 0, "A block has whole rows.");
  static_assert(kPadding < Spec::kKernelW, "Each output reaches its own.");

  // Where a thread's vector is, in elements.
  static __device__ int PlaceOf(int plane, int vector) {
    return (kGap + plane * (kVectors + kGap) + vector) * kVector;
  }

  // What is under a thread's outputs, whose own vector is at `own`.
  static __device__ void Read(const InputType* own, float (&row)[kColumns]) {
    constexpr int kAccesses = kBefore + 1 + kAfter;
    alignas(kMaxAccessBytes) unsigned words[kAccesses * kWords];
#pragma unroll
    for (int k = 0; k < kAccesses; ++k) {
      reinterpret_cast<Access<kBytes>*>(words)[k] =
          reinterpret_cast<const Access<kBytes>*>(own)[k - kBefore];
    }
#pragma unroll
    for (int x = 0; x < kColumns; ++x) {
      const int at = kBefore * kVector - kPadding + x;
      row[x] = FloatOf(words[at / kHalves], at % kHalves, InputType{});
    }
  }
};

// Rows of the input, one for now and kRowsAhead for later.
template <typename Spec>
struct WalkRing {
  using Row = WalkRow<Spec>;
  static constexpr int kSlots = Spec::kRowsAhead + 1;
  static constexpr int kSlot = Row::kPlaces * Row::kVector;  // elements
  static constexpr int kAll = kSlots * kSlot;

  alignas(kMaxAccessBytes) typename Spec::InputType elements[kAll];

  // By all threads. What is between planes stays so.
  __device__ void Clear() {
    auto* accesses = reinterpret_cast<Access<Row::kBytes>*>(elements);
    for (int k = threadIdx.x; k < kAll / Row::kVector; k += Spec::kThreads) {
      accesses[k] = {};
    }
  }

  static __device__ int SlotAfter(int slot) {
    return slot == kAll - kSlot ? 0 : slot + kSlot;
  }
};

// The filters of a block's planes: lanes that load from many places wait for
// each other.
template <typename Spec>
struct WalkFilters {
  using Index = typename Spec::Index;
  static constexpr int kTaps = Spec::kKernelH * Spec::kKernelW;
  static constexpr int kPlanes = WalkRow<Spec>::kPlanes;

  float taps[kPlanes * kTaps];
  bool are_finite;

  // To be followed by a barrier.
  __device__ void Begin() {
    if (threadIdx.x == 0) are_finite = true;
  }

  // Loads those of the planes from `first` on, and notes if one of their taps,
  // or of those before, is not finite. All threads must come, when nobody reads
  // those before any more.
  __device__ void Load(const typename Spec::Tensors& t, Index first) {
    constexpr Index kAll = Spec::Tiles::kC * kTaps;
    const Index from = first % Spec::Tiles::kC * kTaps;
    float zero = 0.0f;
    for (int k = threadIdx.x; k < kPlanes * kTaps; k += Spec::kThreads) {
      Index i = from + k;
      if constexpr (kPlanes <= Spec::Tiles::kC) {
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
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_DEPTHWISE_RING_CUH_
