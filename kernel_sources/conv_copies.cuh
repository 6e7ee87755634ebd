// What producers' warps have on its way where Spec::kBatchesAhead > 0: f32 of a
// filter with one tap, or one in each phase, copied as they lie behind the
// threads' backs, four pixels at once, to places of the warp's own in shared
// memory. So no register waits for memory, and a batch is on its way for as
// long as those before it take.
//
//   copies.Start(chunk);
//   copies.Take(values);  // of the oldest batch
//   copies.Next();        // sends for another in its place
#ifndef KILN_KERNEL_SOURCES_CONV_COPIES_CUH_
#define KILN_KERNEL_SOURCES_CONV_COPIES_CUH_

#include "async_copy.cuh"
#include "conv_batches.cuh"
#include "conv_block_tiles.cuh"
#include "conv_octets.cuh"
#include "conv_positions.cuh"
#include "conv_stages.cuh"

namespace kiln {

template <typename Spec, bool kCopies = (Spec::kBatchesAhead > 0)>
class ConvCopies {
 public:
  using Tile = ConvTile<Spec>;
  using Index = typename Spec::Index;
  using Positions = PatchPositions<Spec>;
  using Octets = ConvOctets<Spec>;
  using Batches = ConvBatches<Spec>;

  // `thread` of all producers' threads, of which one has every kProducers-th
  // chunk.
  __device__ ConvCopies(const typename Spec::Tensors& t,
                        const ConvStages<Spec>& stages,
                        const BlockTiles<Spec>& tiles, int thread)
      : t_(t),
        tiles_(tiles),
        chunks_(tiles.Count() * Tile::kChunks),
        thread_(thread % ConvStages<Spec>::kProducerThreads),
        places_(stages.copies() + thread / 32 * kWarpPlaces),
        is_aligned_(reinterpret_cast<unsigned long long>(t.input) % 16 == 0) {}

  // Begins again, with a chunk counted over all tiles of the block.
  __device__ void Start(int chunk) {
    WaitForCopies<0>();
    chunk_ = chunk;
    batch_ = 0;
    place_ = 0;
#pragma unroll 1
    for (int i = 0; i < Spec::kBatchesAhead; ++i) Next();
  }

  // values[n][k]: an octet of each position.
  template <typename Values>
  __device__ void Take(Values& values) const {
    WaitForCopies<Spec::kBatchesAhead - 1>();
    __syncwarp();
#pragma unroll
    for (int n = 0; n < Batches::kAtOnce; ++n) {
#pragma unroll
      for (int k = 0; k < Batches::kSlices; ++k) {
        const float* const octet = PlaceOf(n, k) + thread_ % 32;
#pragma unroll
        for (int i = 0; i < 8; ++i) values[n][k][i] = octet[i * 32];
      }
    }
  }

  // Sends for the next batch, if there is one, in the place of the oldest.
  __device__ void Next() {
    __syncwarp();  // all have taken what was there
    if (chunk_ < chunks_) is_aligned_ ? Send<true>() : Send<false>();
    CommitCopies();
    if (++place_ == Spec::kBatchesAhead) place_ = 0;
    if (++batch_ < Batches::CountOf(thread_, false)) return;
    batch_ = 0;
    chunk_ += Spec::kProducers;
  }

 private:
  static constexpr int kPixels = 4;  // of a copy
  static constexpr int kOctetPlaces = 8 * 32;
  static constexpr int kBatchPlaces = Spec::kOctetsAtOnce * kOctetPlaces;
  static constexpr int kWarpPlaces = Spec::kBatchesAhead * kBatchPlaces;
  // Lanes that have a channel's pixels, and channels that lanes have at once.
  static constexpr int kLanes = 32 / kPixels;
  static constexpr int kChannels = 32 / kLanes;
  static constexpr bool kWhole = Tile::kInputs % Spec::kChunk == 0;
  static constexpr Index kPlane =
      static_cast<Index>(Spec::Input::kH) * Spec::Input::kW;

  __device__ float* PlaceOf(int n, int k) const {
    return places_ + place_ * kBatchPlaces +
           (n * Batches::kSlices + k) * kOctetPlaces;
  }

  template <bool kAligned>
  __device__ void Send() const {
    static_assert(Spec::kScales && sizeof(*t_.input) == 4);
    static_assert(Spec::kOctetColumns == 1 && Spec::kImages == 1);
    static_assert(
        Spec::Input::kW % kPixels == 0 && Spec::kPaddingW % kPixels == 0 &&
            Spec::kStepW % kPixels == 0 && Spec::kRowPitch % kPixels == 0,
        "What is copied at once lies in one row.");
    const ConvBlock<Spec> block = tiles_.BlockOf(chunk_ / Tile::kChunks);
    const int chunk = chunk_ % Tile::kChunks;
    const int top =
        Positions::TopOf(block, tiles_.TileOf(chunk_ / Tile::kChunks), 0);
    const int left = Positions::LeftOf(block);
    const int lane = thread_ % 32;
    const int own = lane / kLanes;  // channel
    const int channels = block.ChannelsFrom(chunk);
    const Index first = Octets::FirstOf(block, chunk) + own * kPlane;
#pragma unroll
    for (int n = 0; n < Batches::kAtOnce; ++n) {
      const int position = Batches::FirstOf(thread_ - lane, batch_) +
                           n * Batches::kStep + lane % kLanes * kPixels;
      const int row = Positions::RowOf(top, position);
      const int column = Positions::ColumnOf(left, position);
      const bool is_there = (position < Batches::PositionsOf(false)) &
                            Positions::IsRow(row) & Positions::IsColumn(column);
      const Index from = first + row * Spec::Input::kW + column;
#pragma unroll
      for (int k = 0; k < Batches::kSlices; ++k) {
        const int octet = Batches::OctetOf(thread_, batch_, k);
        const bool read = is_there & Batches::HasOctet(octet);
        float* const to = PlaceOf(n, k) + lane * kPixels;
#pragma unroll
        for (int i = 0; i < 8; i += kChannels) {
          const int channel = octet * 8 + i;
          const bool has = read & (kWhole || channel + own < channels);
          Copy<kAligned>(to + i * 32, has ? from + channel * kPlane : 0, has);
        }
      }
    }
  }
  template <bool kAligned>
  __device__ void Copy(float* to, Index from, bool read) const {
    if constexpr (kAligned) {
      ptx::CopyAsync<16>(to, t_.input + from, read);
    } else {
#pragma unroll 1
      for (int i = 0; i < kPixels; ++i) {
        ptx::CopyAsync<4>(to + i, t_.input + (read ? from + i : 0), read);
      }
    }
  }

  const typename Spec::Tensors& t_;
  const BlockTiles<Spec> tiles_;
  const int chunks_;
  const int thread_;  // of the producer
  float* const places_;
  const bool is_aligned_;
  // Of the next batch; where it goes is where the oldest lies.
  int chunk_;
  int batch_;
  int place_;
};

// Where nothing is copied ahead.
template <typename Spec>
class ConvCopies<Spec, false> {
 public:
  template <typename... Ignored>
  __device__ explicit ConvCopies(const Ignored&...) {}
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_COPIES_CUH_
