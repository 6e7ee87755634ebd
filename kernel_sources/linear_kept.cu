// A linear layer as of linear.cu, whose weights all fit in shared memory:
// blocks bring them once, and have many tiles of images one after the other.
// Chunks of the next tile arrive while results of one are brought to their end.
#include "linear_copies.cuh"
#include "linear_results.cuh"
#include "linear_sums.cuh"
#include "linear_tile.cuh"
#include "math.cuh"
#include "ptx_barriers.cuh"
#include "ptx_bulk.cuh"
#include "stage_cursor.cuh"
#include "wgmma.cuh"

namespace kiln {

template <typename Spec>
struct KeptShared {
  using Tile = LinearTile<Spec>;
  typename Tile::Weights weights[Tile::kChunks];
  typename Tile::Inputs stages[Spec::kStages];
  typename Tile::Sums sums;
  ptx::Barrier full[Spec::kStages];
  ptx::Barrier empty[Spec::kStages];
  ptx::Barrier has_weights;
  ptx::Barrier padding;  // to 16 bytes
};

// Calls `use` with the first image of each tile of the block.
template <typename Spec, typename Use>
__device__ void ForTiles(const Use& use) {
  using Tile = LinearTile<Spec>;
#pragma unroll 1
  for (int tile = blockIdx.x; tile < Tile::kDown; tile += gridDim.x) {
    use(tile * Tile::kImages);
  }
}

template <typename Spec>
__device__ void BringKept(const typename Spec::Tensors& t,
                          KeptShared<Spec>* shared) {
  using Tile = LinearTile<Spec>;
  using Output = typename Spec::Output;
  const typename CopiesOf<Spec>::Type copies(t);
  if (!copies.HasWork()) return;
  copies.Begin(&shared->has_weights,
               static_cast<int>(Output::kC) * Tile::kChunks);
#pragma unroll 1
  for (int chunk = 0; chunk < Tile::kChunks; ++chunk) {
    copies.Weights(0, chunk, shared->weights + chunk, &shared->has_weights);
  }
  copies.End(&shared->has_weights);
  StageCursor<Spec::kStages> cursor{0};
  ForTiles<Spec>([&](int image) {
    const int rows = min(Tile::kImages, static_cast<int>(Output::kN) - image);
#pragma unroll 1
    for (int chunk = 0; chunk < Tile::kChunks; ++chunk) {
      ptx::Barrier* const full = shared->full + cursor.stage;
      ptx::Wait(shared->empty + cursor.stage, cursor.round() ^ 1);
      copies.Begin(full, rows);
      copies.Inputs(image, chunk, shared->stages + cursor.stage, full);
      copies.End(full);
      cursor.Use();
      cursor.Advance(1);
    }
  });
}

template <typename Spec>
__device__ void KeptLinear(const typename Spec::Tensors& t) {
  using Tile = LinearTile<Spec>;
  static_assert(sizeof(KeptShared<Spec>) == Spec::kSharedBytes,
                "The launch has as much of shared memory.");
  extern __shared__ __align__(1024) float dynamic_shared[];
  auto* const shared = reinterpret_cast<KeptShared<Spec>*>(dynamic_shared);
  if (threadIdx.x == 0) {
    ptx::InitBarrier(&shared->has_weights, Tile::kArrivals);
    InitStages<Tile>(shared->full, shared->empty);
  }
  __syncthreads();
  // The same in all lanes of a warp, of which the compiler must be told, or
  // products wait for each other.
  if (__shfl_sync(~0u, threadIdx.x, 0) >= Tile::kConsumers) {
    return BringKept<Spec>(t, shared);
  }
  ptx::Wait(&shared->has_weights, 0);
  StageCursor<Spec::kStages> cursor{0};
  ForTiles<Spec>([&](int image) {
    LinearSums<Spec> sums;
#pragma unroll 1
    for (int chunk = 0; chunk < Tile::kChunks; ++chunk) {
      ptx::Wait(shared->full + cursor.stage, cursor.round());
      if constexpr (!Tile::kIsSplit) AcquireShared();
      sums.Add(shared->weights[chunk], shared->stages[cursor.stage], chunk > 0);
      ptx::Arrive(shared->empty + cursor.stage);
      sums.AddApart(chunk > 0);
      cursor.Use();
      cursor.Advance(1);
    }
    const LinearPlace place = {image, 0};
    ptx::Sync<Tile::kConsumers>(1);  // the sums before have been read
    sums.Leave(t, place, &shared->sums);
    ptx::Sync<Tile::kConsumers>(1);
    LinearResults<Spec>(t, place, shared->sums).Run();
  });
}

}  // namespace kiln
