// A convolution whose filter is as large as its images, a linear layer, on
// tensor cores (sm_90a), of 16-bit numbers, or of f32 in parts of 16 bits:
//
//   output[n, c] = bias[c] + sum over k of input[n, k] * weight[c, k]
//
// input N x K, weight C x K, output N x C; k goes through channels, rows and
// columns. Operands are contiguous and of one type, and lie along k as tensor
// cores want them; or split_rows.cu has left parts of them so.
//
// Channels are the rows of the product, images its columns. Chunks of k are
// brought to shared memory, rows of 128 bytes, swizzled (wgmma.cuh), as many
// ahead as there are stages, by one or two warps, while all others multiply:
// rows as they lie by copies of 16 bytes, which those that multiply make
// visible to the tensor cores (AcquireShared), for which a thread waits for all
// that it has on its way; parts by bulk copies. Where there are fewer tiles
// than multiprocessors, blocks of a cluster have a part of k each, and of the
// images whose sums all of them have then, each brings a part to its end.
#include "linear_copies.cuh"
#include "linear_results.cuh"
#include "linear_sums.cuh"
#include "linear_tile.cuh"
#include "math.cuh"
#include "ptx_barriers.cuh"
#include "ptx_bulk.cuh"
#include "ptx_cluster.cuh"
#include "stage_cursor.cuh"
#include "wgmma.cuh"

namespace kiln {

template <typename Spec>
struct LinearShared {
  using Tile = LinearTile<Spec>;
  struct Stage {
    typename Tile::Weights weights;
    typename Tile::Inputs inputs;
  };
  union {
    Stage stages[Spec::kStages];
    typename Tile::Sums sums;
  };
  ptx::Barrier full[Spec::kStages];
  ptx::Barrier empty[Spec::kStages];
};

// Blocks that run at once have tiles of neighbouring images and channels, and
// find in the L2 what others have brought.
template <typename Spec>
__device__ LinearPlace PlaceOfBlock() {
  using Tile = LinearTile<Spec>;
  constexpr int kBeside = Tile::kDown < 16 ? Tile::kDown : 16;
  constexpr int kOfGroup = kBeside * Tile::kAcross;
  const int tile = blockIdx.x / Spec::kParts;
  const int above = tile / kOfGroup * kBeside;
  const int beside = min(kBeside, Tile::kDown - above);
  const int own = tile % kOfGroup;
  return {(above + own % beside) * Tile::kImages,
          own / beside * Tile::kChannels,
          static_cast<int>(blockIdx.x % Spec::kParts)};
}

// Calls `use` with each chunk of the block's part of k, whether it is the first
// one, and its stage.
template <typename Spec, typename Use>
__device__ void ForChunks(const LinearPlace& place, const Use& use) {
  using Tile = LinearTile<Spec>;
  const int begin = place.part * Tile::kOfPart;
  const int end = min(begin + Tile::kOfPart, Tile::kChunks);
  StageCursor<Spec::kStages> cursor{0};
#pragma unroll 1
  for (int chunk = begin; chunk < end; ++chunk) {
    use(chunk, chunk == begin, cursor);
    cursor.Use();
    cursor.Advance(1);
  }
}

template <typename Spec>
__device__ void BringLinear(const typename Spec::Tensors& t,
                            const LinearPlace& place,
                            LinearShared<Spec>* shared) {
  using Tile = LinearTile<Spec>;
  using Output = typename Spec::Output;
  const typename CopiesOf<Spec>::Type copies(t);
  if (!copies.HasWork()) return;
  const int rows =
      min(Tile::kChannels, static_cast<int>(Output::kC) - place.channel) +
      min(Tile::kImages, static_cast<int>(Output::kN) - place.image);
  ForChunks<Spec>(
      place, [&](int chunk, bool, const StageCursor<Spec::kStages>& cursor) {
        ptx::Barrier* const full = shared->full + cursor.stage;
        auto& to = shared->stages[cursor.stage];
        ptx::Wait(shared->empty + cursor.stage, cursor.round() ^ 1);
        copies.Begin(full, rows);
        copies.Weights(place.channel, chunk, &to.weights, full);
        copies.Inputs(place.image, chunk, &to.inputs, full);
        copies.End(full);
      });
}

template <typename Spec>
__device__ void AddLinear(const LinearPlace& place, LinearShared<Spec>* shared,
                          LinearSums<Spec>* sums) {
  ForChunks<Spec>(
      place, [&](int, bool is_first, const StageCursor<Spec::kStages>& cursor) {
        const auto& stage = shared->stages[cursor.stage];
        ptx::Wait(shared->full + cursor.stage, cursor.round());
        if constexpr (!LinearTile<Spec>::kIsSplit) AcquireShared();
        sums->Add(stage.weights, stage.inputs, !is_first);
        ptx::Arrive(shared->empty + cursor.stage);
        sums->AddApart(!is_first);
      });
}

template <typename Spec>
__device__ void Linear(const typename Spec::Tensors& t) {
  using Tile = LinearTile<Spec>;
  static_assert(sizeof(LinearShared<Spec>) == Spec::kSharedBytes,
                "The launch has as much of shared memory.");
  extern __shared__ __align__(1024) float dynamic_shared[];
  auto* const shared = reinterpret_cast<LinearShared<Spec>*>(dynamic_shared);
  const LinearPlace place = PlaceOfBlock<Spec>();
  if (threadIdx.x == 0) InitStages<Tile>(shared->full, shared->empty);
  __syncthreads();
  // The same in all lanes of a warp, of which the compiler must be told, or
  // products wait for each other.
  if (__shfl_sync(~0u, threadIdx.x, 0) >= Tile::kConsumers) {
    return BringLinear<Spec>(t, place, shared);
  }
  LinearSums<Spec> sums;
  AddLinear<Spec>(place, shared, &sums);
  ptx::Sync<Tile::kConsumers>(1);  // all products are done
  sums.Leave(t, place, &shared->sums);
  if constexpr (Spec::kParts == 1) {
    ptx::Sync<Tile::kConsumers>(1);
    LinearResults<Spec>(t, place, shared->sums).Run();
  } else {
    ptx::ClusterArrive();
    ptx::ClusterWait();
    LinearResults<Spec>(t, place, shared->sums).Run();
    // Others' sums are read: a block's memory must outlive that.
    ptx::ClusterArrive();
    ptx::ClusterWait();
  }
}

}  // namespace kiln
