// Places in shared memory as PTX instructions take them.
//
//   asm("..." :: "r"(kiln::ptx::SharedAddress(&place)));
#ifndef KILN_KERNEL_SOURCES_SHARED_ADDRESS_CUH_
#define KILN_KERNEL_SOURCES_SHARED_ADDRESS_CUH_

namespace kiln::ptx {

__device__ inline unsigned SharedAddress(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

}  // namespace kiln::ptx

#endif  // KILN_KERNEL_SOURCES_SHARED_ADDRESS_CUH_
