// The way of a convolution's blocks through their tiles and chunks: what
// conv_mma.cu and conv_wgmma.cu share.
#ifndef KILN_KERNEL_SOURCES_CONV_PIPELINE_CUH_
#define KILN_KERNEL_SOURCES_CONV_PIPELINE_CUH_

#include "conv_tails.cuh"

namespace kiln {

// Brings chunk `stage` % kChunks of tile `stage` / kChunks to shared memory,
// without waiting. Weights that never change come once.
template <typename Spec>
__device__ void LoadStage(const typename Spec::Tensors& t,
                          const ConvBlock<Spec>& block, int stage,
                          const ConvShared<Spec>& shared) {
  constexpr int kChunks = ConvTile<Spec>::kChunks;
  const int chunk = stage % kChunks;
  LoadPatch<Spec>(t, block, stage / kChunks, chunk, shared.patch());
  if (kChunks > 1 || stage == 0) {
    LoadWeights<Spec>(t, block, chunk, shared.weights(stage));
  }
}

// Goes through the chunks of the tiles of a block. While one is multiplied the
// next is on its way; where Spec::kSplitStages is 2 it is split meanwhile.
//   bool Product::Split(patch, split)    rounds or splits this thread's part
//                                        of the patch; whether it has
//                                        infinities or NaNs
//   void Product::Start(split, weights, is_first, &sums)
//   void Product::Finish(split, weights, has_non_finite, is_first, &sums)
template <typename Spec, typename Product>
class Convolution {
 public:
  using Tile = ConvTile<Spec>;

  __device__ Convolution(const typename Spec::Tensors& t,
                         const ConvShared<Spec>& shared, Product product)
      : t_(t), shared_(shared), product_(product) {
    const int tiles =
        min(Spec::kTilesPerBlock,
            Tile::kTilesDown - block_.strip * Spec::kTilesPerBlock);
    stages_ = tiles * Tile::kChunks;
  }

  __device__ void Run() {
    Load(0);
    Split(0);
    __syncthreads();  // the patch has been split
    Load(1);
    ConvTail<Spec> tail;
#pragma unroll 1
    for (int stage = 0; stage < stages_; ++stage) {
      const bool has_non_finite = has_non_finite_;
      const bool is_first = stage % Tile::kChunks == 0;
      const float* const patch = shared_.split_patch(stage);
      const unsigned* const weights = shared_.weights(stage);
      product_.Start(patch, weights, is_first, &sums_);
      if (Spec::kSplitStages == 2) Split(stage + 1);
      product_.Finish(patch, weights, has_non_finite, is_first, &sums_);
      if (Spec::kSplitStages == 1) Split(stage + 1);
      __syncthreads();  // all have multiplied, and split the next
      Load(stage + 2);
      if (stage % Tile::kChunks == Tile::kChunks - 1) {
        tail.Take(t_, block_, stage / Tile::kChunks, product_.warp, sums_,
                  shared_.scratch());
      }
    }
    __syncthreads();
    tail.Finish(t_, block_, product_.warp, shared_.scratch());
  }

 private:
  __device__ void Load(int stage) {
    if (stage < stages_) LoadStage<Spec>(t_, block_, stage, shared_);
    CommitCopies();
  }
  __device__ void Split(int stage) {
    if (stage >= stages_) return;
    WaitForCopies<0>();
    __syncthreads();  // it has arrived; where there is one stage, all have
                      // multiplied the last
    has_non_finite_ = __syncthreads_or(
        product_.Split(shared_.patch(), shared_.split_patch(stage)));
  }

  const typename Spec::Tensors& t_;
  const ConvShared<Spec>& shared_;
  const ConvBlock<Spec> block_;
  Product product_;
  Sums<Spec> sums_;
  int stages_;
  bool has_non_finite_ = false;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_PIPELINE_CUH_
