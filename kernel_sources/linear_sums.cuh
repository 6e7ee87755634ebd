// Sums of linear.cu: those of a warpgroup, which has 64 channels of all images
// of a tile.
#ifndef KILN_KERNEL_SOURCES_LINEAR_SUMS_CUH_
#define KILN_KERNEL_SOURCES_LINEAR_SUMS_CUH_

#include "conv_halves.cuh"
#include "linear_tile.cuh"
#include "wgmma.cuh"

namespace kiln {

// Tensor cores cut sums off that they add to. Where numbers have two parts,
// those of a chunk are apart, and are added to those of all, rounded.
template <typename Spec>
class LinearSums {
 public:
  using Tile = LinearTile<Spec>;

  // The products of a chunk, the first of a tile unless `keep`.
  __device__ void Add(const typename Tile::Weights& weights,
                      const typename Tile::Inputs& inputs, bool keep) {
    constexpr bool kInCluster = Spec::kParts > 1;
    const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
    const Descriptor w = MatrixAt<kInCluster>(weights[0][group * 64]);
    const Descriptor x = MatrixAt<kInCluster>(inputs[0]);
    HoldSums(d_);
    BeginProducts();
    Spec::AddProducts(d_, w, x, keep && !kApart);
    CommitProducts();
    WaitForProducts();
    HoldSums(d_);
  }

  // To be called behind it, when the chunk has been given back.
  __device__ void AddApart(bool keep) {
    if constexpr (kApart) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        all_[i] = keep ? all_[i] + d_[i] : d_[i];
      }
    }
  }

  __device__ void Leave(const typename Spec::Tensors& t,
                        const LinearPlace& place,
                        typename Tile::Sums* sums) const {
    const int channel = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    const int image = threadIdx.x % 4 * 2;
    float of_channels[2] = {};
    if constexpr (Tile::kIsSplit) {
      FactorsOf<8>(t.weight_factors, place.channel + channel, Spec::Output::kC,
                   of_channels);
    }
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      float of_images[2] = {};
      if constexpr (Tile::kIsSplit) {
        FactorsOf<1>(t.input_factors, place.image + image + i * 2,
                     Spec::Output::kN, of_images);
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float sum = kApart ? all_[i + k] : d_[i + k];
        // One after the other, the smaller first: together they may be beyond
        // what a float can be, and infinities and zeros must stay.
        const float a = of_images[k % 2];
        const float b = of_channels[k / 2];
        (*sums)[image + i * 2 + k % 2][channel + k / 2 * 8] =
            Tile::kIsSplit ? sum * fminf(a, b) * fmaxf(a, b) : sum;
      }
    }
  }

 private:
  static constexpr int kCount = Tile::kImages / 2;
  static constexpr bool kApart = Tile::kHalves == 2;

  // Those of two rows, kApartBy apart, or of the last one where they end.
  template <int kApartBy>
  static __device__ void FactorsOf(const float* factors, int row, int rows,
                                   float (&of_rows)[2]) {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      of_rows[k] = factors[min(row + k * kApartBy, rows - 1)];
    }
  }

  float d_[kCount];
  float all_[kApart ? kCount : 1];
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_LINEAR_SUMS_CUH_
