// Elements that a thread keeps in shared memory between the statistics of its
// rows and their results, a vector of Spec::kVector of them in each place:
//
//   Spec::kCopied     places are filled by copies of one tensor, Spec::Source,
//                     that go on behind the thread's back; else by the thread
//   Spec::kKeepsRead  places hold what Spec::Read gave, in f32; else the
//                     tensor's own elements, on which it is called again: fewer
//                     bytes for 16-bit types, or used as they are, too
//   Spec::kPutsRead   the thread puts it there; else the copy is the same
//   Spec::kStreams    copies are what nobody reads again
//
// Shared memory rather than registers, because loops over registers must be
// unrolled, which costs time to compile.
#ifndef KILN_KERNEL_SOURCES_ROW_PLACES_CUH_
#define KILN_KERNEL_SOURCES_ROW_PLACES_CUH_

#include "async_copy.cuh"
#include "opaque.cuh"
#include "vectors.cuh"

namespace kiln {

template <typename Spec>
struct Places {
  using Kept = typename Spec::Kept;
  static constexpr int kVector = Spec::kVector;
  static constexpr int kMaxPart = kMaxAccessBytes / sizeof(Kept);
  static constexpr int kPart = kVector < kMaxPart ? kVector : kMaxPart;

  Kept* memory;

  // Accesses of neighbouring threads are neighbours, which keeps the banks
  // free of conflicts.
  __device__ Kept* PartOf(int step, int part) const {
    const int row = step * (kVector / kPart) + part;
    return memory + (row * Spec::kThreads + threadIdx.x) * kPart;
  }
  template <typename Index>
  __device__ void Begin(const Kept* tensor, Index i, bool is_aligned,
                        int step) const {
#pragma unroll
    for (int part = 0; part < kVector / kPart; ++part) {
      BeginCopy<kPart, Spec::kStreams>(tensor, i + part * kPart, is_aligned,
                                       PartOf(step, part));
    }
  }
  __device__ void Get(int step, Vector<Kept, kVector>* vector) const {
#pragma unroll
    for (int part = 0; part < kVector / kPart; ++part) {
      Vector<Kept, kPart> some;
      Fetch(PartOf(step, part), 0, true, &some);
#pragma unroll
      for (int k = 0; k < kPart; ++k) {
        vector->elements[part * kPart + k] = some.elements[k];
      }
    }
  }
  __device__ void Put(int step, const float* x) const {
#pragma unroll
    for (int part = 0; part < kVector / kPart; ++part) {
      Vector<float, kPart> some;
#pragma unroll
      for (int k = 0; k < kPart; ++k) some.elements[k] = x[part * kPart + k];
      kiln::Put(some, true, PartOf(step, part), 0);
    }
  }
};

// Spec::Read of the neighbours from position i on, of which place `step` has
// the copies, if there are any.
template <typename Spec>
__device__ void ReadVector(const typename Spec::Tensors& t,
                           const Places<Spec>& places, int step,
                           typename Spec::Index i, bool is_aligned, float* x) {
  using Domain = typename Spec::Domain;
  constexpr int kVector = Spec::kVector;
  typename Spec::template Held<kVector> held;
  const auto first = PointOf<Domain>(i);
  if constexpr (Spec::kCopied) places.Get(step, Spec::CopiedIn(&held));
  Spec::FetchForRead(t, first, is_aligned, &held);
#pragma unroll
  for (int k = 0; k < kVector; ++k) {
    x[k] = Spec::Read(held, VectorPointOf<Domain, kVector>(first, k));
  }
}

// Spec::Read of the neighbours that begin at `first`, of which `kept` was kept.
template <typename Spec, int kCount>
__device__ void RecallVector(const typename Spec::Tensors& t,
                             const Vector<typename Spec::Kept, kCount>& kept,
                             const Point<typename Spec::Index>& first,
                             bool is_aligned,
                             typename Spec::template Held<kCount>* held,
                             float* x) {
  if constexpr (!Spec::kKeepsRead) {
    *Spec::CopiedIn(held) = kept;
    Spec::FetchForRead(t, first, is_aligned, held);
  }
  Spec::FetchForElement(t, first, is_aligned, held);
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    if constexpr (Spec::kKeepsRead) {
      x[k] = kept.elements[k];
    } else {
      x[k] = Spec::Read(*held,
                        VectorPointOf<typename Spec::Domain, kCount>(first, k));
    }
  }
}

// Spec::Element of the neighbours from position i on, which are in place
// `step`. All have the first of `statistics`, or where kOwn each its own.
template <typename Spec, bool kOwn>
__device__ void FinishVector(const typename Spec::Tensors& t,
                             const Places<Spec>& places, int step,
                             typename Spec::Index i, bool is_aligned,
                             const typename Spec::Statistics* statistics) {
  using Domain = typename Spec::Domain;
  constexpr int kVector = Spec::kVector;
  typename Spec::template Held<kVector> held;
  const auto first = PointOf<Domain>(i);
  Vector<typename Spec::Kept, kVector> kept;
  places.Get(step, &kept);
  float x[kVector];
  RecallVector<Spec>(t, kept, first, is_aligned, &held, x);
#pragma unroll
  for (int k = 0; k < kVector; ++k) {
    Spec::Element(held, VectorPointOf<Domain, kVector>(first, k), x[k],
                  statistics[kOwn ? k : 0]);
  }
  Spec::PutResults(t, first.i, Opaque(is_aligned), held);
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_ROW_PLACES_CUH_
