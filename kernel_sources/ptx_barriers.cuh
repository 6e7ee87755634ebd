// PTX for barriers of some of a block's threads, whole warps (PTX ISA,
// "barrier"). A block has 16; 0 is that of __syncthreads.
//
//   kiln::ptx::Sync<128>(8 + group);
//   const bool any = kiln::ptx::SyncAny<128>(8 + group, is_over);
#ifndef KILN_KERNEL_SOURCES_PTX_BARRIERS_CUH_
#define KILN_KERNEL_SOURCES_PTX_BARRIERS_CUH_

namespace kiln::ptx {

// Waits at `barrier` for kThreads threads.
template <int kThreads>
__device__ void Sync(int barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(kThreads) : "memory");
}

// The same; whether `yes` for any of them.
template <int kThreads>
__device__ bool SyncAny(int barrier, bool yes) {
  int any;
  asm volatile(
      "{.reg .pred yes, any; setp.ne.b32 yes, %1, 0;"
      "barrier.cta.red.or.aligned.pred any, %2, %3, yes; selp.b32 %0, 1, 0, "
      "any;}"
      : "=r"(any)
      : "r"(static_cast<int>(yes)), "r"(barrier), "n"(kThreads)
      : "memory");
  return any != 0;
}

}  // namespace kiln::ptx

#endif  // KILN_KERNEL_SOURCES_PTX_BARRIERS_CUH_
