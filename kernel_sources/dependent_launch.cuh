// Kernels of a plan, one behind the other, whose launches overlap (programmatic
// dependent launch; sm_90 and up, PTX ISA 7.8).
#ifndef KILN_KERNEL_SOURCES_DEPENDENT_LAUNCH_CUH_
#define KILN_KERNEL_SOURCES_DEPENDENT_LAUNCH_CUH_

namespace kiln {

// Waits until the kernels before have ended and their memory is seen. Lets
// blocks of the next begin where this kernel leaves room, once all blocks of
// this one have come here: what the kernels before this one have left is there
// for them without waiting.
__device__ inline void AwaitPrevious() {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "griddepcontrol.wait;\n\t"
      "griddepcontrol.launch_dependents;" ::
          : "memory");
#endif
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_DEPENDENT_LAUNCH_CUH_
