// PTX for counts in memory by which blocks tell each other what is done (PTX
// ISA 6.0, sm_70 and up).
#ifndef KILN_KERNEL_SOURCES_PTX_COUNTS_CUH_
#define KILN_KERNEL_SOURCES_PTX_COUNTS_CUH_

namespace kiln::ptx {

// Adds one and returns the count before. What this thread has written, or seen
// written, is seen by those that read the new count with LoadAcquire or add to
// it here.
__device__ inline unsigned CountOne(unsigned* global) {
  unsigned before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
               : "=r"(before)
               : "l"(global)
               : "memory");
  return before;
}

__device__ inline unsigned LoadAcquire(const unsigned* global) {
  unsigned value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
               : "=r"(value)
               : "l"(global)
               : "memory");
  return value;
}

}  // namespace kiln::ptx

#endif  // KILN_KERNEL_SOURCES_PTX_COUNTS_CUH_
