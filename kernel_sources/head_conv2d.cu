// A convolution of 16-bit numbers with few results, as networks that make
// images end with, on tensor cores (sm_80 and up):
//
//   output[n,c,y,x] = bias[c] + sum over k, i, j of weight[c,k,i,j] *
//     input[n, k, y + i * dilation - padding, x + j * dilation - padding]
//
// input N x K x H x W, weight C x K x R x S, contiguous and of one type, output
// N x C x P x Q. C * S is 16 at most.
//
// Rows of the input go to shared memory as they lie, by copies of 16 bytes, and
// from there, turned, to registers. A filter's column j would need them j
// numbers further on, where no access begins. So each result of each column is
// a row of the product by itself: sums[c * S + j][x] are of column j alone, and
//
//   output[n,c,y,x] = bias[c] + sum over j of
//     sums[c * S + j][x + j * dilation - padding],
//
// which is added up by way of shared memory. Blocks stay, and copies for
// channels and tiles to come are always on their way.
#include "async_copy.cuh"
#include "finish_vector.cuh"
#include "math.cuh"
#include "opaque.cuh"
#include "point.cuh"
#include "ptx_matrix.cuh"
#include "storage_types.cuh"
#include "tile_place.cuh"
#include "vectors.cuh"
#include "warp_products.cuh"

namespace kiln {

// How a block's tile of the output, a row for each warp, and what it reads for
// it are divided: in units of 8 numbers of a row.
template <typename Spec>
struct HeadTile {
  using Input = typename Spec::Input;
  using Output = typename Spec::Output;
  static constexpr int kUnit = 8;
  static constexpr int kChunk = 16;  // channels of a product
  static constexpr int kStages = 3;  // of chunks, in shared memory
  static constexpr int kChunks = (Input::kC + kChunk - 1) / kChunk;
  static constexpr int kRows = Output::kC * Spec::kKernelW;
  static_assert(kRows <= 16, "A product has a row for each.");

  static constexpr int kTileH = Spec::kThreads / 32;
  static constexpr int kTileW = Spec::kTileW;
  static constexpr int kAcross = (Output::kW + kTileW - 1) / kTileW;
  static constexpr int kDown = (Output::kH + kTileH - 1) / kTileH;
  static constexpr int kTiles = kAcross * kDown * Output::kN;

  static constexpr int kLeft = (Spec::kPaddingW + kUnit - 1) / kUnit * kUnit;
  static constexpr int kReach = (Spec::kKernelW - 1) * Spec::kDilationW;
  static constexpr int kNeeded = kLeft - Spec::kPaddingW + kTileW + kReach;
  // Two at a time.
  static constexpr int kUnits = (kNeeded + 2 * kUnit - 1) / (2 * kUnit) * 2;
  static constexpr int kPatchH =
      kTileH + (Spec::kKernelH - 1) * Spec::kDilationH;
  // An odd number, so that eight channels' units lie in different banks.
  static constexpr int kUnitsOfChannel = (kPatchH * kUnits) | 1;
};

template <typename Spec>
struct HeadShared {
  using Tile = HeadTile<Spec>;
  uint4 stages[Tile::kStages][Tile::kChunk][Tile::kUnitsOfChannel];
  // As fragments of matrices (ptx_halves.cuh): four words of each lane.
  uint4 weights[Tile::kChunks][Spec::kKernelH][32];
  float sums[Tile::kTileH][Tile::kRows][Tile::kUnits * Tile::kUnit];
};

template <typename Spec>
using HeadPlace = TilePlace<typename Spec::Index, HeadTile<Spec>>;

// Brings what the block reads, by all of its threads.
template <typename Spec>
class HeadCopies {
 public:
  using Tile = HeadTile<Spec>;
  using Type = typename Spec::InputType;
  using Index = typename Spec::Index;

  __device__ HeadCopies(const typename Spec::Tensors& t,
                        HeadShared<Spec>* shared)
      : t_(t), is_aligned_(AreAligned(t.input)), shared_(shared) {}

  // Channels of a chunk for a tile; ends a group of copies.
  __device__ void Begin(int tile, int chunk, int stage) const {
    constexpr int kOfChannel = Tile::kPatchH * Tile::kUnits;
    constexpr int kCount = Tile::kChunk * kOfChannel;
    if (tile < Tile::kTiles) {
      const HeadPlace<Spec> place(tile);
#pragma unroll 4
      for (int i = threadIdx.x; i < kCount; i += Spec::kThreads) {
        const int unit = i % kOfChannel;
        BeginUnit(place, chunk * Tile::kChunk + i / kOfChannel,
                  unit / Tile::kUnits, unit % Tile::kUnits,
                  &shared_->stages[stage][i / kOfChannel][unit]);
      }
    }
    CommitCopies();
  }

  __device__ void LoadWeights() const {
    constexpr int kCount = Tile::kChunks * Spec::kKernelH * 32;
#pragma unroll 1
    for (int i = threadIdx.x; i < kCount; i += Spec::kThreads) {
      const int lane = i % 32;
      const int tap = i / 32 % Spec::kKernelH;
      const int chunk = i / 32 / Spec::kKernelH;
      unsigned words[4];
#pragma unroll
      for (int word = 0; word < 4; ++word) {
        const int row = lane / 4 + word % 2 * 8;
        const int k = chunk * Tile::kChunk + lane % 4 * 2 + word / 2 * 8;
        words[word] = static_cast<unsigned>(Weight(row, k + 1, tap)) << 16 |
                      Weight(row, k, tap);
      }
      shared_->weights[chunk][tap][lane] =
          make_uint4(words[0], words[1], words[2], words[3]);
    }
  }

 private:
  // Outside the image, and beyond the last channel, zeros.
  __device__ void BeginUnit(const HeadPlace<Spec>& place, int channel, int row,
                            int unit, uint4* to) const {
    using Input = typename Spec::Input;
    const int y = place.y + row - Spec::kPaddingH;
    const int x = place.x - Tile::kLeft + unit * Tile::kUnit;
    const bool exists = y >= 0 && y < Input::kH && x >= 0 && x < Input::kW &&
                        channel < Input::kC;
    const Index i =
        ((place.n * Input::kC + channel) * Input::kH + y) * Input::kW + x;
    if (is_aligned_) {
      ptx::CopyAsync<16>(to, t_.input + (exists ? i : 0), exists);
    } else {
      Vector<Type, Tile::kUnit> numbers = {};
      if (exists) FetchCompactly(t_.input, i, false, &numbers);
      *to = *reinterpret_cast<const uint4*>(numbers.elements);
    }
  }

  // Of a row of products, as bits; 0 where there is none.
  __device__ unsigned short Weight(int row, int channel, int tap) const {
    constexpr int kWidth = Spec::kKernelW;
    if (row >= Tile::kRows || channel >= Spec::Input::kC) return 0;
    const int filter = row / kWidth * Spec::Input::kC + channel;
    return t_.weight[(filter * Spec::kKernelH + tap) * kWidth + row % kWidth]
        .bits;
  }

  const typename Spec::Tensors& t_;
  const bool is_aligned_;
  HeadShared<Spec>* const shared_;
};

// The sums of a warp, which has a row of the tile.
template <typename Spec>
class HeadSums {
 public:
  using Tile = HeadTile<Spec>;

  // The products of a chunk.
  __device__ void Add(const HeadShared<Spec>& shared, int stage, int chunk) {
    const typename Spec::InputType type{};
    const int lane = threadIdx.x % 32;
    const int row = threadIdx.x / 32;
    // Of four matrices two have eight channels each, and two the next unit.
    const uint4* const units = shared.stages[stage][lane % 16] + lane / 16;
#pragma unroll
    for (int tap = 0; tap < Spec::kKernelH; ++tap) {
      const uint4 a = shared.weights[chunk][tap][lane];
      const int first = (row + tap * Spec::kDilationH) * Tile::kUnits;
#pragma unroll
      for (int unit = 0; unit < Tile::kUnits; unit += 2) {
        const uint4 b = ptx::LoadTransposed(units + first + unit);
        AddWarpProduct(d_[unit], a, b.x, b.y, type);
        AddWarpProduct(d_[unit + 1], a, b.z, b.w, type);
      }
    }
  }

  // Leaves them for the warp's lanes.
  __device__ void Leave(HeadShared<Spec>* shared) const {
    const int g = threadIdx.x % 32 / 4;
    const int t = threadIdx.x % 4;
    auto& rows = shared->sums[threadIdx.x / 32];
    __syncwarp();  // what these have read is read
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (g + 8 * half >= Tile::kRows) continue;
#pragma unroll
      for (int unit = 0; unit < Tile::kUnits; ++unit) {
        *reinterpret_cast<float2*>(
            &rows[g + 8 * half][unit * Tile::kUnit + 2 * t]) =
            make_float2(d_[unit][2 * half], d_[unit][2 * half + 1]);
      }
    }
    __syncwarp();
  }

 private:
  float d_[Tile::kUnits][4] = {};
};

// What follows sums, a vector of a channel's row at a time.
template <typename Spec>
__device__ void FinishHead(const typename Spec::Tensors& t, bool is_aligned,
                           int tile, const HeadShared<Spec>& shared) {
  using Tile = HeadTile<Spec>;
  using Output = typename Spec::Output;
  using Index = typename Spec::Index;
  constexpr int kVector = Spec::kVector;
  constexpr int kAcross = Spec::kTileW / kVector;
  constexpr int kFirst = Tile::kLeft - Spec::kPaddingW;
  static_assert(Spec::kTileW % kVector == 0 && Output::kW % kVector == 0,
                "Vectors end with rows.");
  const HeadPlace<Spec> place(tile);
  const int row = threadIdx.x / 32;
  const int y = place.y + row;
  if (y >= Output::kH) return;
#pragma unroll 1
  for (int i = threadIdx.x % 32; i < kAcross * Output::kC; i += 32) {
    const int c = i / kAcross;
    const int first = i % kAcross * kVector;
    if (place.x + first >= Output::kW) continue;
    float results[kVector] = {};
#pragma unroll
    for (int j = 0; j < Spec::kKernelW; ++j) {
      const float* const sums = shared.sums[row][c * Spec::kKernelW + j] +
                                kFirst + first + j * Spec::kDilationW;
#pragma unroll
      for (int k = 0; k < kVector; ++k) results[k] += sums[k];
    }
    FinishVector<Spec>(t,
                       PointAt<Output, Index>(place.n, c, y, place.x + first),
                       Opaque(is_aligned), results);
  }
}

template <typename Spec>
__device__ void HeadConv2d(const typename Spec::Tensors& t) {
  using Tile = HeadTile<Spec>;
  constexpr int kAhead = Tile::kStages - 1;
  static_assert(Spec::Input::kW % Tile::kUnit == 0, "Units end with rows.");
  static_assert(!Spec::kWrapsRows, "Rows do not read on into each other.");
  static_assert(sizeof(HeadShared<Spec>) == Spec::kSharedBytes,
                "The launch has as much of shared memory.");
  extern __shared__ __align__(16) float dynamic_shared[];
  auto* const shared = reinterpret_cast<HeadShared<Spec>*>(dynamic_shared);
  const HeadCopies<Spec> copies(t, shared);
  // The chunk that comes next, of which tile, and into which stage.
  int tile_ahead = blockIdx.x, chunk_ahead = 0, stage_ahead = 0;
  const auto begin = [&] {
    copies.Begin(tile_ahead, chunk_ahead, stage_ahead);
    stage_ahead = (stage_ahead + 1) % Tile::kStages;
    if (++chunk_ahead == Tile::kChunks) {
      chunk_ahead = 0;
      tile_ahead += gridDim.x;
    }
  };
#pragma unroll 1
  for (int i = 0; i < kAhead; ++i) begin();
  copies.LoadWeights();
  const bool is_aligned = Spec::IsAligned(t);
  int stage = 0;
#pragma unroll 1
  for (int tile = blockIdx.x; tile < Tile::kTiles; tile += gridDim.x) {
    HeadSums<Spec> sums;
#pragma unroll 1
    for (int chunk = 0; chunk < Tile::kChunks; ++chunk) {
      WaitForCopies<kAhead - 1>();
      __syncthreads();  // everybody's; and the stage before is free
      begin();
      sums.Add(*shared, stage, chunk);
      stage = (stage + 1) % Tile::kStages;
    }
    sums.Leave(shared);
    FinishHead<Spec>(t, is_aligned, tile, *shared);
  }
}

}  // namespace kiln
