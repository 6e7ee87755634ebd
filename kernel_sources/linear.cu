// A convolution whose filter is as large as its images, a linear layer, of
// 16-bit numbers on tensor cores (sm_90a):
//
//   output[n, c] = bias[c] + sum over k of input[n, k] * weight[c, k]
//
// input N x K, weight C x K, contiguous and of one type, output N x C; k goes
// through channels, rows and columns.
//
// Channels are the rows of the product, images its columns. Both operands lie
// along k in memory, as tensor cores want them: copies of 16 bytes bring rows
// of 128 bytes to shared memory, swizzled (wgmma.cuh). Two warps send for them,
// as many chunks of k ahead as there are stages, and all others multiply: those
// make visible to the tensor cores what has arrived (AcquireShared), for which
// a thread waits for all that it has on its way. Where there are fewer tiles
// than multiprocessors, blocks of a cluster have a part of k each, and of the
// images whose sums all of them have then, each brings a part to its end.
#include "async_copy.cuh"
#include "finish_vector.cuh"
#include "math.cuh"
#include "opaque.cuh"
#include "point.cuh"
#include "ptx_barriers.cuh"
#include "ptx_bulk.cuh"
#include "ptx_cluster.cuh"
#include "stage_cursor.cuh"
#include "storage_types.cuh"
#include "vectors.cuh"
#include "wgmma.cuh"

namespace kiln {

template <typename Spec>
struct LinearTile {
  using Input = typename Spec::Input;
  using Output = typename Spec::Output;
  static constexpr int kInputs = Input::kC * Input::kH * Input::kW;
  static constexpr int kOctet = 8;  // numbers of a unit of 16 bytes
  static constexpr int kChunk = 64;
  static constexpr int kOctets = kChunk / kOctet;
  static constexpr int kChunks = (kInputs + kChunk - 1) / kChunk;
  static constexpr int kOfPart = (kChunks + Spec::kParts - 1) / Spec::kParts;
  static constexpr int kProducers = 64;  // threads
  static constexpr int kConsumers = Spec::kThreads - kProducers;
  static constexpr int kChannels = kConsumers / 128 * 64;
  static constexpr int kImages = Spec::kImages;
  static constexpr int kDown = (Output::kN + kImages - 1) / kImages;
  static constexpr int kAcross = (Output::kC + kChannels - 1) / kChannels;
  static_assert(kImages % Spec::kParts == 0, "Blocks have as many of them.");
};

template <typename Spec>
struct LinearShared {
  using Tile = LinearTile<Spec>;
  struct Stage {
    uint4 weights[Tile::kChannels][Tile::kOctets];
    uint4 inputs[Tile::kImages][Tile::kOctets];
  };
  union {
    Stage stages[Spec::kStages];
    // So much apart that a warp's sums go to different banks.
    float sums[Tile::kImages][Tile::kChannels + 4];
  };
  ptx::Barrier full[Spec::kStages];
  ptx::Barrier empty[Spec::kStages];

  // By one thread.
  __device__ void InitBarriers() {
    for (int stage = 0; stage < Spec::kStages; ++stage) {
      ptx::InitBarrier(full + stage, Tile::kProducers);
      ptx::InitBarrier(empty + stage, Tile::kConsumers);
    }
    ptx::FenceBarrierInit();
  }
};

// Which tile a block has. Blocks that run at once have tiles of neighbouring
// images and channels, and find in the L2 what others have brought.
template <typename Spec>
struct LinearPlace {
  using Tile = LinearTile<Spec>;
  int image, channel;  // the first
  int part;            // of k
  int begin, end;      // of its chunks

  __device__ LinearPlace() {
    constexpr int kBeside = Tile::kDown < 16 ? Tile::kDown : 16;
    constexpr int kOfGroup = kBeside * Tile::kAcross;
    part = blockIdx.x % Spec::kParts;
    begin = part * Tile::kOfPart;
    end = min(begin + Tile::kOfPart, Tile::kChunks);
    const int tile = blockIdx.x / Spec::kParts;
    const int above = tile / kOfGroup * kBeside;
    const int beside = min(kBeside, Tile::kDown - above);
    const int own = tile % kOfGroup;
    image = (above + own % beside) * Tile::kImages;
    channel = own / beside * Tile::kChannels;
  }
};

// Brings chunks, by the block's last threads.
template <typename Spec>
class LinearCopies {
 public:
  using Tile = LinearTile<Spec>;
  using Shared = LinearShared<Spec>;
  using Type = typename Spec::InputType;
  using Index = typename Spec::Index;

  __device__ LinearCopies(const typename Spec::Tensors& t,
                          const LinearPlace<Spec>& place)
      : t_(t),
        place_(place),
        is_aligned_(Spec::kCopied > 1 && AreAligned(t.input, t.weight)) {}

  __device__ void Run(Shared* shared) const {
    StageCursor<Spec::kStages> cursor{0};
#pragma unroll 1
    for (int chunk = place_.begin; chunk < place_.end; ++chunk) {
      const int stage = cursor.stage;
      ptx::Wait(shared->empty + stage, cursor.round() ^ 1);
      auto& to = shared->stages[stage];
      if (is_aligned_) {
        if constexpr (Spec::kCopied > 1) Bring<true>(chunk, &to);
        ptx::ArriveWithCopies(shared->full + stage);
      } else {
        Bring<false>(chunk, &to);
        ptx::Arrive(shared->full + stage);
      }
      cursor.Use();
      cursor.Advance(1);
    }
  }

 private:
  template <bool kAligned>
  __device__ void Bring(int chunk, typename Shared::Stage* to) const {
    Rows<kAligned, Spec::kStreams>(t_.weight, place_.channel, Spec::Output::kC,
                                   chunk, to->weights);
    Rows<kAligned, false>(t_.input, place_.image, Spec::Output::kN, chunk,
                          to->inputs);
  }

  // Of `count` rows of a matrix those from `first` on; beyond them, zeros.
  // Eight lanes have a row: of others, each would ask for a line of its own.
  template <bool kAligned, bool kStreams, int kRows>
  __device__ void Rows(const Type* matrix, int first, int count, int chunk,
                       uint4 (&units)[kRows][Tile::kOctets]) const {
    constexpr int kAtOnce = Tile::kProducers / Tile::kOctets;  // rows
    const int own = thread_ / Tile::kOctets;
    const int octet = thread_ % Tile::kOctets;
    const int k = chunk * Tile::kChunk + octet * Tile::kOctet;
    static_assert(kAtOnce == 8, "Of which each is swizzled in its way.");
    first += own;
    const Type* const from =
        matrix + static_cast<Index>(first) * Tile::kInputs + k;
#pragma unroll kAligned ? 32 : 1
    for (int row = 0; row < kRows; row += kAtOnce) {
      const bool exists = first + row < count;
      Unit<kAligned, kStreams>(
          matrix, from + static_cast<Index>(row) * Tile::kInputs,
          exists ? Tile::kInputs - k : 0, &units[row + own][octet ^ own]);
    }
  }

  // Eight numbers, of which `count` exist.
  template <bool kAligned, bool kStreams>
  __device__ void Unit(const Type* matrix, const Type* from, int count,
                       uint4* unit) const {
    auto* const to = reinterpret_cast<Type*>(unit);
    if constexpr (kAligned) {
#pragma unroll
      for (int k = 0; k < Tile::kOctet; k += Spec::kCopied) {
        const bool exists = k < count;
        ptx::CopyAsync<Spec::kCopied * 2, kStreams>(
            to + k, exists ? from + k : matrix, exists);
      }
    } else {
#pragma unroll 1
      for (int k = 0; k < Tile::kOctet; ++k) {
        to[k] = k < count ? from[k] : Type{};
      }
    }
  }

  const typename Spec::Tensors& t_;
  const LinearPlace<Spec>& place_;
  const bool is_aligned_;
  const int thread_ = threadIdx.x - Tile::kConsumers;
};

// Those of a warpgroup, which has 64 channels of all images.
template <typename Spec>
class LinearSums {
 public:
  using Tile = LinearTile<Spec>;
  using Shared = LinearShared<Spec>;

  // Of all chunks.
  __device__ void Add(const LinearPlace<Spec>& place, Shared* shared) {
    StageCursor<Spec::kStages> cursor{0};
#pragma unroll 1
    for (int chunk = place.begin; chunk < place.end; ++chunk) {
      const int stage = cursor.stage;
      ptx::Wait(shared->full + stage, cursor.round());
      AcquireShared();
      AddChunk(shared->stages[stage], chunk > place.begin);
      ptx::Arrive(shared->empty + stage);
      cursor.Use();
      cursor.Advance(1);
    }
  }

  // Where stages were, of which nobody reads anything any more.
  __device__ void Leave(Shared* shared) const {
    const int g = threadIdx.x % 32 / 4;
    const int t = threadIdx.x % 4;
    const int channel = threadIdx.x / 32 * 16 + g;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int image = i / 4 * 8 + 2 * t + i % 2;
      shared->sums[image][channel + i / 2 % 2 * 8] = d_[i];
    }
  }

 private:
  static constexpr int kCount = Tile::kImages / 2;

  __device__ void AddChunk(const typename Shared::Stage& stage, bool keep) {
    constexpr bool kInCluster = Spec::kParts > 1;
    const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
    const Descriptor weights = MatrixAt<kInCluster>(stage.weights[group * 64]);
    const Descriptor inputs = MatrixAt<kInCluster>(stage.inputs[0]);
    HoldSums(d_);
    BeginProducts();
    Spec::AddProducts(d_, weights, inputs, keep);
    CommitProducts();
    WaitForProducts();
    HoldSums(d_);
  }

  float d_[kCount];
};

// Of all blocks of a cluster together, at `from` in the memory of each.
template <typename Spec, int kCount>
__device__ void TakeSums(const float* from, float (&sums)[kCount]) {
  constexpr int kAtOnce = kCount % 4 == 0 ? 4 : 1;
#pragma unroll
  for (int k = 0; k < kCount; ++k) sums[k] = Spec::kParts == 1 ? from[k] : 0;
  if constexpr (Spec::kParts > 1) {
#pragma unroll
    for (int k = 0; k < kCount; k += kAtOnce) {
      float parts[Spec::kParts][kAtOnce];
#pragma unroll
      for (int part = 0; part < Spec::kParts; ++part) {
        const unsigned there = ptx::MapToRank(from + k, part);
        if constexpr (kAtOnce == 4) {
          const float4 four = ptx::LoadFourFromCluster(there);
          parts[part][0] = four.x;
          parts[part][1] = four.y;
          parts[part][2] = four.z;
          parts[part][3] = four.w;
        } else {
          parts[part][0] = ptx::LoadFromCluster(there);
        }
      }
#pragma unroll
      for (int part = 0; part < Spec::kParts; ++part) {
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) sums[k + i] += parts[part][i];
      }
    }
  }
}

// What follows the sums of the block's share of the images, which may lie in
// all blocks of a cluster.
template <typename Spec>
__device__ void FinishLinear(const typename Spec::Tensors& t,
                             const LinearPlace<Spec>& place,
                             const LinearShared<Spec>& shared) {
  using Tile = LinearTile<Spec>;
  using Output = typename Spec::Output;
  using Index = typename Spec::Index;
  constexpr int kVector = Spec::kVector;
  constexpr int kAcross =
      (Tile::kChannels < Output::kC ? Tile::kChannels : Output::kC) / kVector;
  constexpr int kShare = Tile::kImages / Spec::kParts;
  static_assert(Output::kC % kVector == 0, "Vectors end with rows.");
  bool is_aligned = true;
  if constexpr (kVector > 1) is_aligned = Spec::IsAligned(t);
#pragma unroll 1
  for (int i = threadIdx.x; i < kShare * kAcross; i += Tile::kConsumers) {
    const int image = place.part * kShare + i / kAcross;
    const int channel = i % kAcross * kVector;
    const int n = place.image + image;
    const int c = place.channel + channel;
    if (n >= Output::kN || c >= Output::kC) continue;
    float results[kVector];
    TakeSums<Spec>(&shared.sums[image][channel], results);
    FinishVector<Spec>(t, PointAt<Output, Index>(n, c, 0, 0),
                       Opaque(is_aligned), results);
  }
}

template <typename Spec>
__device__ void Linear(const typename Spec::Tensors& t) {
  using Tile = LinearTile<Spec>;
  static_assert(sizeof(LinearShared<Spec>) == Spec::kSharedBytes,
                "The launch has as much of shared memory.");
  extern __shared__ __align__(1024) float dynamic_shared[];
  auto* const shared = reinterpret_cast<LinearShared<Spec>*>(dynamic_shared);
  const LinearPlace<Spec> place;
  if (threadIdx.x == 0) shared->InitBarriers();
  __syncthreads();
  // The same in all lanes of a warp, of which the compiler must be told, or
  // products wait for each other.
  if (__shfl_sync(~0u, threadIdx.x, 0) >= Tile::kConsumers) {
    return LinearCopies<Spec>(t, place).Run(shared);
  }
  LinearSums<Spec> sums;
  sums.Add(place, shared);
  ptx::Sync<Tile::kConsumers>(1);  // all products are done
  sums.Leave(shared);
  if constexpr (Spec::kParts == 1) {
    ptx::Sync<Tile::kConsumers>(1);
    FinishLinear<Spec>(t, place, *shared);
  } else {
    ptx::ClusterArrive();
    ptx::ClusterWait();
    FinishLinear<Spec>(t, place, *shared);
    // Others' sums are read: a block's memory must outlive that.
    ptx::ClusterArrive();
    ptx::ClusterWait();
  }
}

}  // namespace kiln
