// Brings chunks of operands to shared memory, for linear.cu:
//
//   copies.Begin(full, rows);        // of weights and inputs together
//   copies.Weights(channel, chunk, &stage.weights, full);
//   copies.Inputs(image, chunk, &stage.inputs, full);
//   copies.End(full);                // a barrier of Tile::kArrivals arrivals
#ifndef KILN_KERNEL_SOURCES_LINEAR_COPIES_CUH_
#define KILN_KERNEL_SOURCES_LINEAR_COPIES_CUH_

#include "async_copy.cuh"
#include "linear_tile.cuh"
#include "vectors.cuh"

namespace kiln {

// Of rows as they lie, by the block's last threads.
template <typename Spec>
class LinearCopies {
 public:
  using Tile = LinearTile<Spec>;

  __device__ explicit LinearCopies(const typename Spec::Tensors& t)
      : t_(t),
        is_aligned_(Spec::kCopied > 1 && AreAligned(t.input, t.weight)) {}

  __device__ bool HasWork() const { return true; }
  __device__ void Begin(ptx::Barrier*, int) const {}

  __device__ void Weights(int channel, int chunk, typename Tile::Weights* to,
                          ptx::Barrier*) const {
    Rows<Spec::kStreams>(t_.weight, channel, Spec::Output::kC, chunk, (*to)[0]);
  }
  __device__ void Inputs(int image, int chunk, typename Tile::Inputs* to,
                         ptx::Barrier*) const {
    Rows<false>(t_.input, image, Spec::Output::kN, chunk, (*to)[0]);
  }

  __device__ void End(ptx::Barrier* full) const {
    if (is_aligned_) {
      ptx::ArriveWithCopies(full);
    } else {
      ptx::Arrive(full);
    }
  }

 private:
  using Type = typename Spec::InputType;
  using Index = typename Spec::Index;

  template <bool kStreams, int kRows>
  __device__ void Rows(const Type* matrix, int first, int count, int chunk,
                       uint4 (&units)[kRows][Tile::kOctets]) const {
    if (is_aligned_) {
      if constexpr (Spec::kCopied > 1) {
        Bring<true, kStreams>(matrix, first, count, chunk, units);
      }
    } else {
      Bring<false, false>(matrix, first, count, chunk, units);
    }
  }

  // Of `count` rows of a matrix those from `first` on; beyond them, zeros.
  // Eight lanes have a row: of others, each would ask for a line of its own.
  template <bool kAligned, bool kStreams, int kRows>
  __device__ void Bring(const Type* matrix, int first, int count, int chunk,
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
  const bool is_aligned_;
  const int thread_ = threadIdx.x - Tile::kConsumers;
};

// Of rows that lie as parts (split_parts.cuh), a chunk of which is contiguous,
// by one thread.
template <typename Spec>
class LinearBulk {
 public:
  using Tile = LinearTile<Spec>;

  __device__ explicit LinearBulk(const typename Spec::Tensors& t) : t_(t) {}

  __device__ bool HasWork() const { return threadIdx.x == Tile::kConsumers; }

  __device__ void Begin(ptx::Barrier* full, int rows) const {
    ptx::ArriveExpecting(full, Tile::kHalves * rows * kBytesOfRow);
  }

  __device__ void Weights(int channel, int chunk, typename Tile::Weights* to,
                          ptx::Barrier* full) const {
    Rows<Spec::Output::kC>(t_.weight, channel, chunk, *to, full);
  }
  __device__ void Inputs(int image, int chunk, typename Tile::Inputs* to,
                         ptx::Barrier* full) const {
    Rows<Spec::Output::kN>(t_.input, image, chunk, *to, full);
  }

  __device__ void End(ptx::Barrier*) const {}

 private:
  static constexpr int kBytesOfRow = Tile::kOctets * 16;

  template <int kCount, typename Type, int kRows>
  static __device__ void Rows(const Type* matrix, int first, int chunk,
                              uint4 (&to)[Tile::kHalves][kRows][Tile::kOctets],
                              ptx::Barrier* full) {
    const int rows = min(kRows, kCount - first);
#pragma unroll
    for (int half = 0; half < Tile::kHalves; ++half) {
      const long long row =
          static_cast<long long>(half * Tile::kChunks + chunk) * kCount + first;
      ptx::BulkLoad(to[half], matrix + row * Tile::kChunk, rows * kBytesOfRow,
                    full);
    }
  }

  const typename Spec::Tensors& t_;
};

template <typename Spec, bool kIsSplit = LinearTile<Spec>::kIsSplit>
struct CopiesOf {
  using Type = LinearCopies<Spec>;
};
template <typename Spec>
struct CopiesOf<Spec, true> {
  using Type = LinearBulk<Spec>;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_LINEAR_COPIES_CUH_
