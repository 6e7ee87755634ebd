// States of reducers merged across the blocks of a cluster.
//
//   kiln::MergeCluster<4>(rank, &state);
//   ...
//   kiln::ptx::ClusterWait();
#ifndef KILN_KERNEL_SOURCES_MERGE_CLUSTER_CUH_
#define KILN_KERNEL_SOURCES_MERGE_CLUSTER_CUH_

#include "merge_block.cuh"
#include "ptx_cluster.cuh"

namespace kiln {

// Merges the states of kBlocks neighbours, a power of two, in a cluster, into
// every thread: each block has one state, in all its threads. `rank`: the
// block's, in the cluster. A block's memory must outlive its readers: all wait
// for the cluster before they end or merge again.
template <int kBlocks, typename Reducer>
__device__ void MergeCluster(int rank, Reducer* state) {
  __shared__ StatesMemory<Reducer, 1> own;
  if (threadIdx.x == 0) own[0] = *state;
  // All blocks have written.
  ptx::ClusterArrive();
  ptx::ClusterWait();
  const unsigned from = ptx::MapToRank(
      own.words, rank / kBlocks * kBlocks + threadIdx.x % kBlocks);
  float* words = reinterpret_cast<float*>(state);
#pragma unroll
  for (int k = 0; k < static_cast<int>(sizeof(Reducer) / sizeof(float)); ++k) {
    words[k] = ptx::LoadFromCluster(from + k * sizeof(float));
  }
  ptx::ClusterArrive();
  MergeLanes<kBlocks>(state);
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_MERGE_CLUSTER_CUH_
