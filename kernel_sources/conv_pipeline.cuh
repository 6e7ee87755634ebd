// The way of the blocks of conv_mma.cu through their tiles and chunks.
#ifndef KILN_KERNEL_SOURCES_CONV_PIPELINE_CUH_
#define KILN_KERNEL_SOURCES_CONV_PIPELINE_CUH_

#include "async_copy.cuh"
#include "conv_patch.cuh"
#include "conv_tails.cuh"

namespace kiln {

// The patch as it arrives; the patch that is multiplied, rounded or split;
// weights, twice where they change from chunk to chunk; what the tail needs.
template <typename Spec>
class ConvShared {
 public:
  using Patch = ConvPatch<Spec>;
  static constexpr int kWeightStages = ConvTile<Spec>::kChunks > 1 ? 2 : 1;
  static constexpr int kSplitPatch = Patch::kPatchWords;
  static constexpr int kWeights =
      kSplitPatch + (Spec::kSplitsInput ? 2 : 1) * Patch::kPatchWords;
  static constexpr int kDepthOffsets =
      kWeights + kWeightStages * Patch::kWeightWords;
  static constexpr int kScratch = kDepthOffsets + Patch::kSteps * 8;
  static_assert((kScratch + Spec::kScratchWords) * 4 == Spec::kSharedBytes,
                "The launch asks for this much.");

  __device__ explicit ConvShared(float* words) : words_(words) {}

  __device__ float* patch() const { return words_; }
  __device__ float* split_patch() const { return words_ + kSplitPatch; }
  __device__ unsigned* weights(int stage) const {
    return reinterpret_cast<unsigned*>(
        words_ + kWeights + stage % kWeightStages * Patch::kWeightWords);
  }
  __device__ int* depth_offsets() const {
    return reinterpret_cast<int*>(words_ + kDepthOffsets);
  }
  __device__ float* scratch() const { return words_ + kScratch; }

 private:
  float* words_;
};

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
// next is on its way.
//   bool Product::Split(patch, split)    rounds or splits this thread's part
//                                        of the patch; whether it has
//                                        infinities or NaNs
//   void Product::Multiply(split, weights, has_non_finite, &sums)
template <typename Spec, typename Product>
class Convolution {
 public:
  using Tile = ConvTile<Spec>;

  __device__ Convolution(const typename Spec::Tensors& t,
                         const ConvShared<Spec>& shared, Product product)
      : t_(t), shared_(shared), product_(product) {
    stages_ = block_.tiles() * Tile::kChunks;
  }

  __device__ void Run() {
    Load(0);
    Split(0);
    __syncthreads();  // the patch has been split
    Load(1);
    ConvTail<Spec> tail;
    const Channels<Spec> channels(t_, blockIdx.x, nullptr);
#pragma unroll 1
    for (int stage = 0; stage < stages_; ++stage) {
      if (stage % Tile::kChunks == 0) sums_.Clear();
      product_.Multiply(shared_.split_patch(), shared_.weights(stage),
                        has_non_finite_, &sums_);
      Split(stage + 1);
      __syncthreads();  // all have multiplied, and split the next
      Load(stage + 2);
      if (stage % Tile::kChunks == Tile::kChunks - 1) {
        tail.Take(t_, channels, block_, stage / Tile::kChunks, product_.warp,
                  sums_, Unscaled<Spec>{}, shared_.scratch());
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
    __syncthreads();  // it has arrived, and all have multiplied the last
    has_non_finite_ = __syncthreads_or(
        product_.Split(shared_.patch(), shared_.split_patch()));
  }

  const typename Spec::Tensors& t_;
  const ConvShared<Spec>& shared_;
  const ConvBlock<Spec> block_{blockIdx.x};
  Product product_;
  Sums<Spec> sums_;
  int stages_;
  bool has_non_finite_ = false;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_PIPELINE_CUH_
