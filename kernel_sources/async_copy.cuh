// Copies from a tensor to places in shared memory of the thread's own that go
// on while the thread does something else (sm_80 and up; PTX ISA 7.0). Before
// sm_80, and where the access is too narrow, a copy is done at once.
//
//   kiln::BeginCopy<4, kStreams>(t.input, i, is_aligned, place);
//   kiln::CommitCopies();    // those begun since the last time are a group
//   kiln::WaitForCopies<1>();  // all groups but the last have arrived
//
// ptx::CopyAsync is the instruction itself, to any place.
#ifndef KILN_KERNEL_SOURCES_ASYNC_COPY_CUH_
#define KILN_KERNEL_SOURCES_ASYNC_COPY_CUH_

#include "vectors.cuh"

#if __CUDA_ARCH__ >= 800
#include "shared_address.cuh"
#endif

namespace kiln {

#if __CUDA_ARCH__ >= 800
namespace ptx {

// Copies 4, 8 or 16 bytes, or zeros unless `read`; both addresses are multiples
// of as many, and valid in either case. 16 go past the L1; where kStreams,
// the L2 brings whole lines and gives them up first.
template <int kBytes, bool kStreams = false>
__device__ void CopyAsync(void* shared, const void* global, bool read) {
  if constexpr (kBytes == 16 && kStreams) {
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(policy));
    asm volatile(
        "cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2, "
        "%3;"
        :
        : "r"(SharedAddress(shared)), "l"(global), "r"(read ? 16 : 0),
          "l"(policy)
        : "memory");
  } else if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(SharedAddress(shared)), "l"(global), "r"(read ? 16 : 0)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :
                 : "r"(SharedAddress(shared)), "l"(global), "n"(kBytes),
                   "r"(read ? kBytes : 0)
                 : "memory");
  }
}

}  // namespace ptx

template <int kBytes, bool kStreams>
__device__ void CopyAccess(void* shared, const void* global) {
  const unsigned to = ptx::SharedAddress(shared);
  if constexpr (kBytes == 16 && kStreams) {
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0;" : "=l"(policy));
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;"
                 :
                 : "r"(to), "l"(global), "l"(policy)
                 : "memory");
  } else if constexpr (kBytes == 16) {
    // Past the first-level cache: nothing is read twice.
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :
                 : "r"(to), "l"(global)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                 :
                 : "r"(to), "l"(global), "n"(kBytes)
                 : "memory");
  }
}
#endif

// Copies kCount neighbours, one access, from tensor + i to `place`. kStreams:
// as Fetch does once (PTX ISA 7.4).
template <int kCount, bool kStreams = false, typename T, typename Index>
__device__ void BeginCopy(const T* tensor, Index i, bool is_aligned, T* place) {
#if __CUDA_ARCH__ >= 800
  if constexpr (kCount * sizeof(T) >= 4) {
    if (is_aligned) {
      return CopyAccess<kCount * sizeof(T), kStreams>(place, tensor + i);
    }
  }
#endif
  // A loop: this is rare, and code costs time to compile.
#pragma unroll 1
  for (int k = 0; k < kCount; ++k) place[k] = tensor[i + k];
}

__device__ inline void CommitCopies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits for the thread's own copies but for the last kPending groups.
template <int kPending>
__device__ void WaitForCopies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_ASYNC_COPY_CUH_
