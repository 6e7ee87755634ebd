// The warpgroups that bring chunks of the input where operands are multiplied
// as they are stored and rows of the input begin where an access of 16 bytes
// may (Spec::kTurnsLines). Eight neighbouring pixels of eight channels are a
// matrix, whose rows go from memory to a place of the warp's own in shared
// memory as they lie, behind the threads' backs. When they are there, the warp
// turns them: the eight channels of a pixel become a unit of the patch
// (conv_stages.cuh).
//
// So nothing is on its way in registers, and no number is touched by itself.
// Matrices begin at columns that eight divides; pixels of one that the patch
// has no place for go back to where they came from. A warp has the same eights
// of matrices of each octet, so that where they lie is found once, of a tile or
// of all. It turns what it has sent for itself, so warps meet at the barriers
// of stages alone. Who multiplies makes what is there visible to the tensor
// cores (AcquireShared); a fence here would wait for all that is on its way.
#ifndef KILN_KERNEL_SOURCES_CONV_TURNED_LINES_CUH_
#define KILN_KERNEL_SOURCES_CONV_TURNED_LINES_CUH_

#include "async_copy.cuh"
#include "conv_block_tiles.cuh"
#include "conv_octets.cuh"
#include "conv_phase_weights.cuh"
#include "conv_positions.cuh"
#include "conv_stages.cuh"
#include "ptx_matrix.cuh"

namespace kiln {

template <typename Spec>
class ConvTurnedLines {
 public:
  using Tile = ConvTile<Spec>;
  using Group = GroupTile<Spec>;
  using Stages = ConvStages<Spec>;
  using Positions = PatchPositions<Spec>;
  using Index = typename Spec::Index;

  __device__ ConvTurnedLines(const typename Spec::Tensors& t,
                             const Stages& stages, unsigned number)
      : t_(t),
        stages_(stages),
        tiles_(number),
        chunks_(tiles_.Count() * Tile::kChunks),
        is_aligned_(reinterpret_cast<unsigned long long>(t.input) % 16 == 0) {}

  __device__ void Run() {
    const PhaseWeights<Spec> weights(reinterpret_cast<const uint4*>(t_.packed),
                                     tiles_.block());
    if (thread_ == 0) stages_.LeaveNotes();
    if (Spec::kKeepsWeights && thread_ == 0) weights.Keep(stages_);
    Ahead ahead(*this);
#pragma unroll 1
    for (int place = 0; place < kAhead; ++place) Send(place, &ahead);
    Targets targets;
    if constexpr (kBatches == 1) targets = TargetsOf(0);
    StageCursor<Spec::kStages> cursor{0};
    int place = 0;
#pragma unroll 1
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      const int stage = cursor.stage;
      ptx::Wait(stages_.empty(stage), cursor.round() ^ 1);
      if (!Spec::kKeepsWeights && thread_ == 0) {
        weights.Send(chunk % Tile::kChunks, stage, stages_);
      }
#pragma unroll 1
      for (int batch = 0; batch < kBatches; ++batch) {
        if constexpr (kBatches > 1) targets = TargetsOf(batch);
#pragma unroll 1
        for (int octet = set_; octet < Group::kOctets; octet += kSets) {
          WaitForCopies<kAhead - 1>();
          __syncwarp();
          Turn(octet, targets, PlaceAt(place), stages_.pixels(stage));
          __syncwarp();
          Send(place, &ahead);
          place = place + 1 == kAhead ? 0 : place + 1;
        }
      }
      ptx::Arrive(stages_.full(stage));
      cursor.Use();
      cursor.Advance(1);
    }
  }

 private:
  static constexpr int kWarps = Stages::kProducerThreads / 32;
  static constexpr int kSets = Spec::kOctetSets;
  static constexpr int kWarpsOfSet = kWarps / kSets;
  static constexpr int kAcross = Spec::kMatricesAcross;
  static constexpr int kAtOnce = Spec::kEightsAtOnce;
  static constexpr int kAhead = Spec::kPlacesAhead;
  static constexpr int kUnits = 64;  // of eight matrices
  static constexpr Index kPlane =
      static_cast<Index>(Spec::Input::kH) * Spec::Input::kW;
  // Rows of the patch, of all images, and all matrices of an octet.
  static constexpr int kRowsOfImage = Spec::kPlanesH * Spec::kPlaneHeight;
  static constexpr int kRows = Spec::kImages * kRowsOfImage;
  static constexpr int kMatrices = kRows * kAcross;
  static constexpr int kEights = (kMatrices + 7) / 8;
  static constexpr int kOfWarp = (kEights + kWarpsOfSet - 1) / kWarpsOfSet;
  static constexpr int kBatches = (kOfWarp + kAtOnce - 1) / kAtOnce;
  static_assert(kWarps * kAhead * kAtOnce * kUnits <= Spec::kPlaceUnits);
  static_assert(!Spec::kScales && Spec::kOctetColumns == 1 &&
                Spec::kRowParts == 1 && Spec::kProducers == 1 &&
                !Spec::kWalksColumns && Spec::Input::kW % 8 == 0);

  // Where a matrix lies: an image of the block, a row of its patch, and the
  // first pixel's column, from the first matrix of the row on.
  struct Matrix {
    int image;
    int row;
    int column;
    bool there;

    __device__ explicit Matrix(unsigned number) {
      const unsigned row_of_all = number / kAcross;
      image = Spec::kImages == 1 ? 0 : row_of_all / kRowsOfImage;
      row = Spec::kImages == 1 ? row_of_all : row_of_all % kRowsOfImage;
      column = number % kAcross * 8;
      there = number < kMatrices;
    }
  };

  // Units of the patch for the lane's pixels of a batch, of the first octet;
  // negative: there are none.
  struct Targets {
    int units[kAtOnce][2];
  };

  // What is sent for next, of the chunks, counted over all tiles of the block
  // and images of its team; and the lane's rows of it.
  struct Ahead {
    int chunk = 0;
    int batch = 0;
    int octet;
    int channels;         // of the chunk, from the lane's first on
    Index first;          // element of the chunk's first channel
    Index rows[kAtOnce];  // from there to the lane's
    bool has[kAtOnce];    // whether these are in the image

    __device__ explicit Ahead(const ConvTurnedLines& lines)
        : octet(lines.set_) {
      lines.FindChunk(this);
      lines.FindRows(this);
    }
  };

  // The lane's matrix, of those of an eight of the warp's.
  __device__ Matrix MatrixOf(int batch, int eight, int in_eight) const {
    const int number = (batch * kAtOnce + eight) * kWarpsOfSet + in_set_;
    const bool is_ours = kWarps % kSets == 0 || in_set_ < kWarpsOfSet;
    return Matrix(is_ours ? number * 8 + in_eight : kMatrices);
  }

  // A row of one of eight matrices in a place. What is copied together has one
  // line of 128 bytes, or half sectors would be fetched, each for itself; and
  // what is turned together is in different banks.
  static __device__ int UnitOf(int matrix, int row) {
    return 8 * row + (row ^ matrix);
  }

  __device__ uint4* PlaceAt(int place) const {
    return stages_.places() + (warp_ * kAhead + place) * kAtOnce * kUnits;
  }

  // Pixels of the first matrix of a row in front of the patch.
  __device__ int Before() const {
    return Positions::LeftOf(tiles_.block()) & 7;
  }

  __device__ void FindChunk(Ahead* ahead) const {
    const int chunk = ahead->chunk % Tile::kChunks;
    const ConvBlock<Spec> block = tiles_.BlockOf(ahead->chunk / Tile::kChunks);
    ahead->first = ConvOctets<Spec>::FirstOf(block, chunk);
    ahead->channels = block.ChannelsFrom(chunk) - (threadIdx.x % 32 / 8);
  }

  // Of a batch of a tile. Lanes side by side have neighbours of a channel.
  __device__ void FindRows(Ahead* ahead) const {
    constexpr int kStep = Spec::kStrideH * Spec::kInterleave;
    const int top = Positions::TopOf(
        tiles_.block(), tiles_.TileOf(ahead->chunk / Tile::kChunks), 0);
    const int left = Positions::LeftOf(tiles_.block()) - Before();
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const Matrix matrix = MatrixOf(ahead->batch, i, threadIdx.x % 8);
      const int row = top + matrix.row / Spec::kPlanesH * kStep +
                      matrix.row % Spec::kPlanesH;
      const int column = left + matrix.column;
      ahead->has[i] = matrix.there &
                      (Spec::kWrapsRows || Positions::IsRow(row)) &
                      Positions::IsColumn(Positions::AlongRow(row, column));
      ahead->rows[i] =
          (matrix.image * Spec::Input::kC + threadIdx.x % 32 / 8) * kPlane +
          row * Spec::Input::kW + column;
    }
  }

  // Sends for what is next, if there is anything, and goes on.
  __device__ void Send(int place, Ahead* ahead) const {
    if (ahead->chunk < chunks_) {
      const auto* const from =
          t_.input + (ahead->first + ahead->octet * 8 * kPlane);
      const int channels = ahead->channels - ahead->octet * 8;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        SendRows(from + ahead->rows[i], ahead->has[i] ? channels : 0,
                 PlaceAt(place) + i * kUnits);
      }
      ahead->octet += kSets;
      if (ahead->octet >= Group::kOctets) GoOn(ahead);
    }
    CommitCopies();
  }
  __device__ void GoOn(Ahead* ahead) const {
    ahead->octet = set_;
    if (kBatches > 1 && ++ahead->batch < kBatches) return FindRows(ahead);
    ahead->batch = 0;
    ++ahead->chunk;
    FindChunk(ahead);
    if (kBatches > 1 || ahead->chunk % Tile::kChunks == 0) FindRows(ahead);
  }

  // Two rows of a matrix, four channels apart, so many of which there are;
  // zeros for the others.
  template <typename T>
  __device__ void SendRows(const T* from, int channels, uint4* place) const {
    const int matrix = threadIdx.x % 8;
    const int channel = threadIdx.x % 32 / 8;
    if (is_aligned_) {
#pragma unroll
      for (int k = 0; k < 8; k += 4) {
        ptx::CopyAsync<16>(place + UnitOf(matrix, channel + k),
                           k < channels ? from + k * kPlane : t_.input,
                           k < channels);
      }
    } else {
#pragma unroll 1
      for (int k = 0; k < 8; k += 4) {
        place[UnitOf(matrix, channel + k)] =
            GatherEight(from + k * kPlane, k < channels);
      }
    }
  }

  // Turns what has arrived of an octet, four matrices at once. A lane has the
  // address of a row of pixels, and then that of one pixel's channels in the
  // same matrix. One eight after another: registers are few.
  __device__ void Turn(int octet, const Targets& targets, uint4* place,
                       uint4* patch) const {
    uint4* const first = place + UnitOf(threadIdx.x % 32 / 8, threadIdx.x % 8);
    uint4* const second =
        place + UnitOf(threadIdx.x % 32 / 8 + 4, threadIdx.x % 8);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const uint4 values[2] = {ptx::LoadTransposed(first + i * kUnits),
                               ptx::LoadTransposed(second + i * kUnits)};
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const int unit = targets.units[i][k];
        ptx::StoreMatrices(unit >= 0 ? patch + Group::UnitOfOctet(unit, octet)
                                     : (k == 0 ? first : second) + i * kUnits,
                           values[k]);
      }
    }
  }

  __device__ Targets TargetsOf(int batch) const {
    Targets targets;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const Matrix matrix = MatrixOf(batch, i, threadIdx.x % 32 / 8 + 4 * k);
        targets.units[i][k] =
            FirstUnitOf(matrix, matrix.column - Before() +
                                    static_cast<int>(threadIdx.x % 8));
      }
    }
    return targets;
  }

  // Of a pixel in such a column of the patch.
  static __device__ int FirstUnitOf(const Matrix& matrix, int column) {
    const int plane =
        matrix.row % Spec::kPlanesH * Spec::kPlanesW + column % Spec::kStrideW;
    const int in_row = column / Spec::kStrideW;
    const bool has_place = matrix.there && column >= 0 &&
                           column % Spec::kStrideW < Spec::kPlanesW &&
                           in_row < Spec::kRowPitch;
    const int position = matrix.image * Spec::kImagePositions +
                         plane * Group::kPlane +
                         matrix.row / Spec::kPlanesH * Spec::kRowPitch + in_row;
    return has_place ? Group::UnitOf(0, position) : -1;
  }

  const typename Spec::Tensors& t_;
  const Stages& stages_;
  const BlockTiles<Spec> tiles_;
  const int chunks_;  // of all
  const bool is_aligned_;
  const int thread_ = threadIdx.x - Tile::kThreads;
  const int warp_ = thread_ / 32;
  const int set_ = warp_ % kSets;
  const int in_set_ = warp_ / kSets;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_TURNED_LINES_CUH_
