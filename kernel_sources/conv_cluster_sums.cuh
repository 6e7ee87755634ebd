// Sums of a tile whose chunks the blocks of a cluster share: where there are
// few tiles and many chunks, more multiprocessors have something to do.
//
//   const kiln::ClusterSums<Spec, kTiles, kCount> shared(part, stages);
//   factor = shared.Add(factor, sums);
#ifndef KILN_KERNEL_SOURCES_CONV_CLUSTER_SUMS_CUH_
#define KILN_KERNEL_SOURCES_CONV_CLUSTER_SUMS_CUH_

#include "conv_halves.cuh"
#include "conv_stages.cuh"
#include "ptx_cluster.cuh"

namespace kiln {

// By all threads that multiply; those that bring chunks have ended, or do so
// without waiting. A thread has sums[kTiles][kCount].
template <typename Spec, int kTiles, int kCount>
class ClusterSums {
 public:
  // `part`: the block's, in the cluster. `units`: the stages, of which nobody
  // brings or multiplies anything any more once all threads are here.
  __device__ ClusterSums(int part, uint4* units)
      : part_(part),
        sums_(units + threadIdx.x),
        factor_(reinterpret_cast<float*>(units + kUnits * Tile::kThreads) +
                threadIdx.x) {}

  // Adds the sums of the cluster's other blocks, in their order, to those of
  // the first, and ends the others. `factor` undoes the input's scale of this
  // block's sums; returns that of all. It is the largest, so that nothing
  // becomes infinite on the way.
  __device__ float Add(float factor, float (&sums)[kTiles][kCount]) const {
    if (part_ > 0) Leave(factor, sums);
    // All have written.
    ptx::ClusterArrive();
    ptx::ClusterWait();
    if (part_ == 0) factor = Take(factor, sums);
    // Others' sums are read: a block's memory must outlive that.
    ptx::ClusterArrive();
    if (part_ > 0) {
      ptx::ClusterWait();
      asm volatile("exit;");
    }
    return factor;
  }

 private:
  using Tile = ConvTile<Spec>;
  using Sums = float[kTiles][kCount];
  static constexpr int kWords = 4;  // of a unit
  static constexpr int kUnits = kTiles * kCount / kWords;
  static_assert(kCount % kWords == 0, "Sums are whole units.");
  static_assert((kUnits * 16 + 4) * Tile::kThreads <=
                    Spec::kStages * GroupTile<Spec>::kStage * 16,
                "Sums and factors lie where stages were.");

  __device__ void Leave(float factor, const Sums& sums) const {
    Tile::Sync();  // all products are done
    *factor_ = factor;
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int i = 0; i < kCount; i += kWords) {
        const float* const own = sums[m] + i;
        sums_[(m * kCount + i) / kWords * Tile::kThreads] =
            make_uint4(__float_as_uint(own[0]), __float_as_uint(own[1]),
                       __float_as_uint(own[2]), __float_as_uint(own[3]));
      }
    }
  }

  __device__ float Take(float own, Sums& sums) const {
    float largest = own;
#pragma unroll 1
    for (int other = 1; other < Spec::kSumBlocks; ++other) {
      largest = fmaxf(largest, FactorOf(other));
    }
    const float ratio = RatioOfPowers(own, largest);
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) sums[m][i] *= ratio;
    }
#pragma unroll 1
    for (int other = 1; other < Spec::kSumBlocks; ++other) {
      AddOf(other, RatioOfPowers(FactorOf(other), largest), sums);
    }
    return largest;
  }
  __device__ float FactorOf(int other) const {
    return ptx::LoadFromCluster(ptx::MapToRank(factor_, other));
  }
  __device__ void AddOf(int other, float ratio, Sums& sums) const {
    const unsigned from = ptx::MapToRank(sums_, other);
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int i = 0; i < kCount; i += kWords) {
        const float4 more = ptx::LoadFourFromCluster(
            from + (m * kCount + i) / kWords * Tile::kThreads * 16);
        sums[m][i] = fmaf(more.x, ratio, sums[m][i]);
        sums[m][i + 1] = fmaf(more.y, ratio, sums[m][i + 1]);
        sums[m][i + 2] = fmaf(more.z, ratio, sums[m][i + 2]);
        sums[m][i + 3] = fmaf(more.w, ratio, sums[m][i + 3]);
      }
    }
  }

  const int part_;
  uint4* const sums_;
  float* const factor_;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_CLUSTER_SUMS_CUH_
