// The warpgroups of conv_wgmma.cu that bring chunks of the input from memory to
// shared memory: eight channels of a pixel become one unit of 16 bytes, for
// each part, scaled and rounded (conv_halves.cuh). Weights, packed before,
// arrive by bulk copies.
//
// Producers take chunks in turn, or all share each. A scale holds until a chunk
// does not suit it. A chunk with infinities or NaNs fills its stage twice:
// without them, and with them alone, which meet the large parts of the weights
// only; so they come out as in PyTorch.
#ifndef KILN_KERNEL_SOURCES_CONV_PRODUCER_CUH_
#define KILN_KERNEL_SOURCES_CONV_PRODUCER_CUH_

#include "conv_halves.cuh"
#include "conv_stages.cuh"
#include "patch_share.cuh"
#include "storage_types.cuh"
#include "wgmma.cuh"

namespace kiln {

enum class Keep { kAll, kFinite, kNonFinite };

template <typename Spec>
class ConvProducer {
 public:
  using Tile = ConvTile<Spec>;
  using Group = GroupTile<Spec>;
  using Index = typename Spec::Index;

  __device__ ConvProducer(const typename Spec::Tensors& t,
                          const ConvStages<Spec>& stages, unsigned number)
      : t_(t), stages_(stages), block_(number) {}

  __device__ void Run() {
    if (Spec::kKeepsWeights && producer_ == 0 && thread_ == 0) KeepWeights();
    const int chunks = block_.tiles() * Tile::kChunks;
#pragma unroll 1
    for (int i = producer_; i < chunks; i += Spec::kProducers) {
      Bring(i / Tile::kChunks, i % Tile::kChunks);
      cursor_.Advance(Spec::kProducers);
    }
  }

 private:
  // Of a scale; the first suits numbers about 1. It is not set by a loop,
  // behind which the compiler writes more branches.
  struct Exponent {
    int value = 6;
  };

  // The largest magnitude of each image, as bits.
  struct Magnitudes {
    unsigned of[Spec::kImages] = {};

    __device__ void Take(int image, unsigned magnitude) {
#pragma unroll
      for (int i = 0; i < Spec::kImages; ++i) {
        if (image == i) of[i] = max(of[i], magnitude);
      }
    }
  };

  static constexpr bool kScales = Spec::kScales;
  static constexpr int kThreads = ConvStages<Spec>::kProducerThreads;
  static constexpr Index kPlane =
      static_cast<Index>(Spec::Input::kH) * Spec::Input::kW;
  using Share = PatchShare<Group::kPatch, kThreads, 1, Group::kOctets>;

  __device__ void KeepWeights() {
    constexpr unsigned kBytes = Group::kWeights * 16;
    ptx::ArriveExpecting(stages_.kept_weights_full(), kBytes * Tile::kChunks);
#pragma unroll 1
    for (int chunk = 0; chunk < Tile::kChunks; ++chunk) {
      ptx::BulkLoad(stages_.weights(0, chunk), WeightsOf(chunk), kBytes,
                    stages_.kept_weights_full());
    }
  }

  __device__ const uint4* WeightsOf(int chunk) const {
    return reinterpret_cast<const uint4*>(t_.packed) +
           static_cast<long long>(block_.weights(chunk)) * Group::kWeights;
  }

  // Writes a chunk, again where its scales do not suit, and where it has
  // numbers that are not finite, first without them and then them alone.
  __device__ void Bring(int tile, int chunk) {
    Keep keep = Keep::kAll;
    bool has_begun = false;
    bool has_scaled = false;
#pragma unroll 1
    while (true) {
      Magnitudes most = Write(tile, chunk, keep, has_begun);
      if constexpr (!kScales) return End(false, false);
      most = MostOfAll(most);
      has_begun = true;
      if (keep == Keep::kAll && HasNonFinite(most)) {
        keep = Keep::kFinite;
      } else if (keep != Keep::kNonFinite && !has_scaled && !Suit(most)) {
        has_scaled = true;
        FindScales(most);
      } else {
        End(keep == Keep::kFinite, keep == Keep::kNonFinite);
        if (keep != Keep::kFinite) return;
        keep = Keep::kNonFinite;
        has_begun = false;
      }
    }
  }

  // Waits for the stage to be free, sends for its weights.
  __device__ void Begin(int chunk) {
    ptx::Wait(stages_.empty(cursor_.stage), cursor_.round() ^ 1);
    if (Spec::kKeepsWeights || thread_ != 0) return;
    constexpr unsigned kBytes = Group::kWeights * 16;
    ptx::ArriveExpecting(stages_.full(cursor_.stage), kBytes);
    ptx::BulkLoad(stages_.weights(cursor_.stage, chunk), WeightsOf(chunk),
                  kBytes, stages_.full(cursor_.stage));
  }

  __device__ void End(bool is_again, bool only_large) {
    if (thread_ == 0) {
      auto* const note = stages_.note(cursor_.stage);
#pragma unroll
      for (int image = 0; image < Spec::kImages; ++image) {
        note->factors[image] =
            PowerOfTwo(kScales ? -exponents_[image].value : 0);
      }
      note->is_again = is_again;
      note->only_large = only_large;
    }
    PublishShared();
    ptx::Arrive(stages_.full(cursor_.stage));
    cursor_.Use();
  }

  __device__ void FindScales(const Magnitudes& most) {
#pragma unroll
    for (int image = 0; image < Spec::kImages; ++image) {
      if (most.of[image] == 0) continue;
      exponents_[image].value = ScaleExponent(most.of[image]);
    }
  }
  // Whether the scales suit all images.
  __device__ bool Suit(const Magnitudes& most) const {
    bool all_suit = true;
#pragma unroll
    for (int image = 0; image < Spec::kImages; ++image) {
      const float scaled =
          __uint_as_float(most.of[image]) * PowerOfTwo(exponents_[image].value);
      all_suit &= most.of[image] == 0 || (scaled >= kFewest && scaled < kMost);
    }
    return all_suit;
  }
  static __device__ bool HasNonFinite(const Magnitudes& most) {
    bool has_any = false;
#pragma unroll
    for (const unsigned largest : most.of) has_any |= largest >= kInfinityBits;
    return has_any;
  }

  // The largest `mine` of this producer's threads.
  __device__ Magnitudes MostOfAll(Magnitudes mine) {
    constexpr int kWarps = kThreads / 32;
    unsigned* const most =
        stages_.magnitudes(producer_) + Spec::kImages * kWarps * turn_;
    turn_ ^= 1;
#pragma unroll
    for (int image = 0; image < Spec::kImages; ++image) {
      unsigned& largest = mine.of[image];
      largest = __reduce_max_sync(~0u, largest);
      if (thread_ % 32 == 0) most[image * kWarps + thread_ / 32] = largest;
    }
    asm volatile("bar.sync %0, %1;" ::"r"(2 + producer_), "n"(kThreads)
                 : "memory");
#pragma unroll
    for (int i = 0; i < Spec::kImages * kWarps; ++i) {
      mine.of[i / kWarps] = max(mine.of[i / kWarps], most[i]);
    }
    return mine;
  }

  // Writes one chunk of the patch; zeros outside the input. Where the stage has
  // not begun, loads go out before it does. The largest magnitudes of what this
  // thread has kept.
  __device__ Magnitudes Write(int tile, int chunk, Keep keep, bool has_begun) {
    // So many slices of so many positions are on their way before the first is
    // used.
    constexpr int kOctets = Spec::kOctetsAtOnce;
    constexpr int kSlices = Share::kEach < kOctets ? Share::kEach : kOctets;
    constexpr int kAtOnce = kOctets / kSlices;
    Magnitudes most;
#pragma unroll 1
    for (int i = Share::First(thread_); i < Group::kPatch;
         i += Share::kStep * kAtOnce) {
#pragma unroll 1
      for (int slice = 0; slice < Share::kEach; slice += kSlices) {
        float values[kAtOnce][kSlices][8];
        ReadPositions(tile, chunk, i, slice, values);
        if (!has_begun) Begin(chunk);
        has_begun = true;
        if (kScales && keep != Keep::kAll) {
          Select(keep == Keep::kFinite, values);
        }
        WritePositions(i, slice, values, &most);
      }
    }
    if (!has_begun) Begin(chunk);
    return most;
  }

  // Slices from `slice` on of each kStep-th position from `i` on.
  template <int kPositions, int kSlices>
  __device__ void ReadPositions(int tile, int chunk, int i, int slice,
                                float (&values)[kPositions][kSlices][8]) const {
    const int top = block_.top(tile) * Spec::kStrideH - PaddingH();
    const int left = block_.left() * Spec::kStrideW - PaddingW();
    const int channels = Tile::kInputs - chunk * Spec::kChunk;
    const Index first = FirstOf(chunk);
#pragma unroll
    for (int n = 0; n < kPositions; ++n) {
      const int position = i + n * Share::kStep;
      const int row = RowOf(top, position);
      const int column = ColumnOf(left, position);
      // No branch keeps the loads of positions apart.
      const bool inside = (position < Group::kPatch) & IsOfImage(position) &
                          IsInside(row, column);
      const Index from =
          first + FirstOfImage(position) + row * Spec::Input::kW + column;
#pragma unroll
      for (int k = 0; k < kSlices; ++k) {
        const int octet = Share::Slice(thread_, slice + k);
        LoadEight(from, octet * 8,
                  inside && Share::HasSlice(octet) ? channels : 0,
                  values[n][k]);
      }
    }
  }

  // The same in the patch, scaled and in parts.
  template <int kPositions, int kSlices>
  __device__ void WritePositions(int i, int slice,
                                 float (&values)[kPositions][kSlices][8],
                                 Magnitudes* most) const {
    uint4* const to = stages_.pixels(cursor_.stage);
    float scales[Spec::kImages];
#pragma unroll
    for (int image = 0; image < Spec::kImages; ++image) {
      scales[image] = PowerOfTwo(exponents_[image].value);
    }
#pragma unroll
    for (int n = 0; n < kPositions; ++n) {
      const int position = i + n * Share::kStep;
      if (n > 0 && position >= Group::kPatch) break;
#pragma unroll
      for (int k = 0; k < kSlices; ++k) {
        const int octet = Share::Slice(thread_, slice + k);
        if (!Share::HasSlice(octet)) continue;
        if constexpr (kScales) {
          const int image = ImageOf(position);
          most->Take(image, Scale(OfImage(scales, image), values[n][k]));
        }
        StoreParts<Spec::kIsBFloat16, Spec::kInputParts>(
            values[n][k], to + Group::UnitOf(octet, position), Group::kPart);
      }
    }
  }

  // The first element of a chunk's first channel.
  __device__ Index FirstOf(int chunk) const {
    return (static_cast<Index>(block_.n) * Spec::Input::kC +
            block_.group * Tile::kInputs + chunk * Spec::kChunk) *
           kPlane;
  }

  // Of a position of the patch: its image among the block's, its place in that
  // image's patch, coordinates in the input, and whether it lies there.
  static __device__ int ImageOf(int position) {
    return Spec::kImages == 1 ? 0 : position / Spec::kImagePositions;
  }
  static __device__ int PlaceOf(int position) {
    return Spec::kImages == 1 ? position : position % Spec::kImagePositions;
  }
  static __device__ int RowOf(int top, int position) {
    return top + InPlane(position) / Spec::kRowPitch * Spec::kStrideH +
           PlaneOf(position) / Spec::kPlanesW;
  }
  static __device__ int ColumnOf(int left, int position) {
    return left + InPlane(position) % Spec::kRowPitch * Spec::kStrideW +
           PlaneOf(position) % Spec::kPlanesW;
  }
  static constexpr bool kHasPlanes = Spec::kPlanesH * Spec::kPlanesW > 1;
  static __device__ int PlaneOf(int position) {
    return kHasPlanes ? PlaceOf(position) / Group::kPlane : 0;
  }
  static __device__ int InPlane(int position) {
    return kHasPlanes ? PlaceOf(position) % Group::kPlane : PlaceOf(position);
  }
  // Whether a position has a pixel of its image.
  static __device__ bool IsOfImage(int position) {
    return Spec::kImages == 1 || PlaceOf(position) < Group::kImagePatch;
  }
  static __device__ bool IsInside(int row, int column) {
    return (static_cast<unsigned>(row) <
            static_cast<unsigned>(Spec::Input::kH)) &
           (static_cast<unsigned>(column) <
            static_cast<unsigned>(Spec::Input::kW));
  }
  // From the first element of the chunk's first channel in the first image.
  static __device__ Index FirstOfImage(int position) {
    return ImageOf(position) * Spec::Input::kC * kPlane;
  }

  __device__ void LoadEight(Index from, int channel, int channels,
                            float (&values)[8]) const {
    constexpr bool kWhole = Tile::kInputs % Spec::kChunk == 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const bool read = kWhole ? channels > 0 : channel + k < channels;
      values[k] = read ? Load(t_.input, from + (channel + k) * kPlane) : 0.0f;
    }
  }

  // values[image], from registers.
  static __device__ float OfImage(const float (&values)[Spec::kImages],
                                  int image) {
    float value = values[0];
#pragma unroll
    for (int i = 1; i < Spec::kImages; ++i) {
      if (image == i) value = values[i];
    }
    return value;
  }

  // Puts zeros in the place of finite numbers, or of the others.
  template <int kPositions, int kSlices>
  static __device__ void Select(bool finite,
                                float (&values)[kPositions][kSlices][8]) {
#pragma unroll
    for (auto& slices : values) {
#pragma unroll
      for (auto& octet : slices) {
#pragma unroll
        for (float& value : octet) {
          if ((fabsf(value) < Infinity()) != finite) value = 0.0f;
        }
      }
    }
  }

  // The largest magnitude of what it scales.
  static __device__ unsigned Scale(float scale, float (&values)[8]) {
    unsigned most = 0;
#pragma unroll
    for (float& value : values) {
      most = max(most, MagnitudeBits(value));
      value *= scale;
    }
    return most;
  }

  // Of a phase of a transposed convolution the padding is one less from some
  // phase on.
  __device__ int PaddingH() const {
    return Spec::kPaddingH -
           (block_.phase_h + Spec::kPhaseStartH) / Spec::kPhasesH;
  }
  __device__ int PaddingW() const {
    return Spec::kPaddingW -
           (block_.phase_w + Spec::kPhaseStartW) / Spec::kPhasesW;
  }

  const typename Spec::Tensors& t_;
  const ConvStages<Spec>& stages_;
  const ConvBlock<Spec> block_;
  const int producer_ = (threadIdx.x - ConvTile<Spec>::kThreads) / kThreads;
  const int thread_ = (threadIdx.x - ConvTile<Spec>::kThreads) % kThreads;
  StageCursor<Spec::kStages> cursor_{producer_};
  Exponent exponents_[Spec::kImages];
  int turn_ = 0;
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_PRODUCER_CUH_
