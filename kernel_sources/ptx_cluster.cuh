// PTX for blocks of one cluster (sm_90 and up; PTX ISA 7.8).
#ifndef KILN_KERNEL_SOURCES_PTX_CLUSTER_CUH_
#define KILN_KERNEL_SOURCES_PTX_CLUSTER_CUH_

#include "shared_address.cuh"

namespace kiln::ptx {

// Address of `variable` in the shared memory of block `rank` of the cluster.
__device__ inline unsigned MapToRank(const void* variable, unsigned rank) {
  unsigned mapped;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(mapped)
      : "r"(SharedAddress(variable)), "r"(rank));
  return mapped;
}

// Reads a float of another block; `address` is from MapToRank.
__device__ inline float LoadFromCluster(unsigned address) {
  float value;
  asm volatile("ld.shared::cluster.f32 %0, [%1];"
               : "=f"(value)
               : "r"(address)
               : "memory");
  return value;
}

// The same of four, at a multiple of 16 bytes.
__device__ inline float4 LoadFourFromCluster(unsigned address) {
  float4 values;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(values.x), "=f"(values.y), "=f"(values.z), "=f"(values.w)
               : "r"(address)
               : "memory");
  return values;
}

// What this thread wrote before is seen behind the matching ClusterWait.
__device__ inline void ClusterArrive() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}

// The same, but that nothing need be seen.
__device__ inline void ClusterArriveRelaxed() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}

// Waits until all threads of the cluster have arrived.
__device__ inline void ClusterWait() {
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

}  // namespace kiln::ptx

#endif  // KILN_KERNEL_SOURCES_PTX_CLUSTER_CUH_
