// Sums of a tile whose chunks the blocks of a cluster share: where there are
// few tiles and many chunks, more multiprocessors have something to do.
//
//   kiln::AddClusterSums<Spec>(block.sum_part, stages.pixels(0), sums);
#ifndef KILN_KERNEL_SOURCES_CONV_CLUSTER_SUMS_CUH_
#define KILN_KERNEL_SOURCES_CONV_CLUSTER_SUMS_CUH_

#include "conv_tile.cuh"
#include "ptx_cluster.cuh"

namespace kiln {

// Adds the sums of the cluster's other blocks, in their order, to those of the
// first, and ends the others. Sums have no scales of their own. By all threads
// that multiply; those that bring chunks have ended, or do so without waiting.
// `units`: shared memory for all of a block's sums, of which nobody brings or
// multiplies anything any more once all threads of the block have come here.
template <typename Spec, int kTiles, int kCount>
__device__ void AddClusterSums(int part, uint4* units,
                               float (&sums)[kTiles][kCount]) {
  using Tile = ConvTile<Spec>;
  constexpr int kWords = 4;  // of a unit
  static_assert(kCount % kWords == 0, "Sums are whole units.");
  uint4* const mine = units + threadIdx.x;
  if (part > 0) {
    Tile::Sync();  // all products are done
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int i = 0; i < kCount; i += kWords) {
        const float* const own = sums[m] + i;
        mine[(m * kCount + i) / kWords * Tile::kThreads] =
            make_uint4(__float_as_uint(own[0]), __float_as_uint(own[1]),
                       __float_as_uint(own[2]), __float_as_uint(own[3]));
      }
    }
  }
  // All have written.
  ptx::ClusterArrive();
  ptx::ClusterWait();
  if (part == 0) {
#pragma unroll 1
    for (int other = 1; other < Spec::kSumBlocks; ++other) {
      const unsigned from = ptx::MapToRank(mine, other);
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
#pragma unroll
        for (int i = 0; i < kCount; i += kWords) {
          const float4 more = ptx::LoadFourFromCluster(
              from + (m * kCount + i) / kWords * Tile::kThreads * 16);
          sums[m][i] += more.x;
          sums[m][i + 1] += more.y;
          sums[m][i + 2] += more.z;
          sums[m][i + 3] += more.w;
        }
      }
    }
  }
  // What others have written is read: a block's memory must outlive that.
  ptx::ClusterArriveRelaxed();
  if (part == 0) return;
  ptx::ClusterWait();
  asm volatile("exit;");
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_CLUSTER_SUMS_CUH_
