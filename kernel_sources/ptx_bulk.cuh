// PTX for bulk copies between global and shared memory, and the barriers that
// count their bytes (sm_90 and up; PTX ISA 8.0). Bulk copies take addresses
// and sizes that are multiples of 16 bytes.
#ifndef KILN_KERNEL_SOURCES_PTX_BULK_CUH_
#define KILN_KERNEL_SOURCES_PTX_BULK_CUH_

#include "shared_address.cuh"

namespace kiln::ptx {

// A barrier in shared memory. Waiting is for the end of a phase, named by its
// parity; the first has parity 0.
struct alignas(8) Barrier {
  unsigned long long state;
};

// A phase ends with `arrivals` arrivals and the bytes that they expect.
__device__ inline void InitBarrier(Barrier* barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
               :
               : "r"(SharedAddress(barrier)), "r"(arrivals)
               : "memory");
}

// Makes initialised barriers known to the copy engine.
__device__ inline void FenceBarrierInit() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline void Arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"
               :
               : "r"(SharedAddress(barrier))
               : "memory");
}

__device__ inline void ArriveExpecting(Barrier* barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :
               : "r"(SharedAddress(barrier)), "r"(bytes)
               : "memory");
}

// Arrives when all copies of the thread have that CopyAsync has begun
// (async_copy.cuh).
__device__ inline void ArriveWithCopies(Barrier* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];"
               :
               : "r"(SharedAddress(barrier))
               : "memory");
}

__device__ inline void Wait(Barrier* barrier, unsigned parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}"
      :
      : "r"(SharedAddress(barrier)), "r"(parity)
      : "memory");
}

// The barrier counts the bytes as they arrive in shared memory.
__device__ inline void BulkLoad(void* shared, const void* global,
                                unsigned bytes, Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1], %2, [%3];"
      :
      : "r"(SharedAddress(shared)), "l"(global), "r"(bytes),
        "r"(SharedAddress(barrier))
      : "memory");
}

// Both words at once, seen by any thread of the device sooner or later.
__device__ inline void StoreRelaxed(unsigned long long* global,
                                    unsigned long long value) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(global), "l"(value)
               : "memory");
}

__device__ inline unsigned long long LoadRelaxed(
    const unsigned long long* global) {
  unsigned long long value;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
               : "=l"(value)
               : "l"(global)
               : "memory");
  return value;
}

// The same by a predicate, so that loads behind each other do not wait for one
// another.
__device__ inline void LoadRelaxedIf(bool condition,
                                     const unsigned long long* global,
                                     unsigned long long* value) {
  asm volatile(
      "{\n"
      ".reg .pred condition;\n"
      "setp.ne.b32 condition, %2, 0;\n"
      "@condition ld.relaxed.gpu.global.u64 %0, [%1];\n"
      "}"
      : "+l"(*value)
      : "l"(global), "r"(static_cast<int>(condition))
      : "memory");
}

}  // namespace kiln::ptx

#endif  // KILN_KERNEL_SOURCES_PTX_BULK_CUH_
