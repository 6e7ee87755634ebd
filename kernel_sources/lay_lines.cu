// Lays the input of a convolution of one tap down as halves, once for all
// blocks of its channels, which else would each scale, round and turn all of
// it (conv_producer.cuh): laid_lines.cuh says how they lie, conv_halves.cuh
// what the parts are. A pixel's channels share a scale, by the largest finite
// one. Infinities and NaNs stay what they are in the first part, and are zeros
// in the second; weights that meet them have parts of one sign
// (pack_halves.cu). Where the convolution lays its results down, too, their
// pixels' scales are chosen here, by what they can be at most.
#include "conv_halves.cuh"
#include "dependent_launch.cuh"
#include "laid_lines.cuh"
#include "ptx_cluster.cuh"
#include "result_bounds.cuh"
#include "storage_types.cuh"
#include "vectors.cuh"

namespace kiln {

// The blocks of a cluster have 32 neighbouring positions, filled rows counted,
// of an image, and a part of the channels each; a thread has four of these
// positions, of one row, and every kStep-th channel.
template <typename Spec>
class LineLayer {
 public:
  using Index = typename Spec::Index;
  using Input = typename Spec::Input;
  using Lines = LaidLines<Spec>;
  static constexpr int kThreads = 512;
  static constexpr int kPositions = 32;
  static constexpr int kFours = kPositions / 4;
  static constexpr int kStep = kThreads / kFours;
  static constexpr int kRuns = (Lines::kPlane + kPositions - 1) / kPositions;
  static constexpr int kChannels = static_cast<int>(Input::kC);
  static constexpr int kOfBlock =
      (kChannels + Spec::kCluster - 1) / Spec::kCluster;
  static constexpr int kRounds = (kOfBlock + kStep - 1) / kStep;
  // Threads keep what they read, or read it twice.
  static constexpr bool kKeeps = Spec::kKeepsNumbers;

  // Magnitudes of positions: of the channels of each warp, of the block's and
  // of all.
  struct Shared {
    unsigned of_warps[kThreads / 32][kPositions];
    unsigned of_block[kPositions];
    unsigned of_all[kPositions];
  };

  __device__ LineLayer(const typename Spec::Tensors& t, Shared* shared)
      : t_(t),
        shared_(*shared),
        image_(static_cast<int>(blockIdx.x) / Spec::kCluster / kRuns),
        position_(static_cast<int>(blockIdx.x) / Spec::kCluster % kRuns *
                      kPositions +
                  place()),
        first_(static_cast<int>(blockIdx.x) % Spec::kCluster * kOfBlock +
               static_cast<int>(threadIdx.x) / kFours),
        end_(min((static_cast<int>(blockIdx.x) % Spec::kCluster + 1) * kOfBlock,
                 kChannels)) {
    const int row = position_ / Spec::kLinePitch;
    const int column = position_ % Spec::kLinePitch;
    pixels_ = row < Input::kH ? Input::kW - column : 0;
    from_ = static_cast<Index>(image_) * kChannels * kInputPlane +
            (pixels_ > 0 ? row * static_cast<int>(Input::kW) + column : 0);
  }

  __device__ void Run() const {
    if (kHasFours && reinterpret_cast<unsigned long long>(t_.input) %
                             (4 * sizeof(*t_.input)) ==
                         0) {
      LayDown<true>();
    } else {
      LayDown<false>();
    }
    // Who may still be read waits for the others.
    if constexpr (Spec::kCluster > 1) {
      ptx::ClusterArriveRelaxed();
      ptx::ClusterWait();
    }
  }

 private:
  using Numbers = float[4];

  // Beside the bits of the largest finite magnitude: there are others.
  static constexpr unsigned kSpecial = 0x80000000;

  static constexpr int kInputPlane =
      static_cast<int>(Input::kH) * static_cast<int>(Input::kW);
  static constexpr bool kHasFours = Input::kW % 4 == 0;

  static __device__ int place() {
    return static_cast<int>(threadIdx.x) % kFours * 4;
  }

  template <typename T>
  static __device__ T OneOf(const T*);

  static __device__ unsigned Larger(unsigned a, unsigned b) {
    if constexpr (!Spec::kScalesResults) return max(a, b);
    return max(a & ~kSpecial, b & ~kSpecial) | ((a | b) & kSpecial);
  }

  template <bool kAligned>
  __device__ void LayDown() const {
    Numbers kept[kKeeps ? kRounds : 1];
    unsigned most[4] = {};
#pragma unroll kKeeps ? kRounds : 4
    for (int round = 0; round < kRounds; ++round) {
      Numbers& numbers = kept[kKeeps ? round : 0];
      Read<kAligned>(round, numbers);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const unsigned bits = MagnitudeBits(numbers[k]);
        if (bits < kInfinityBits) {
          most[k] = Larger(most[k], bits);
        } else if (Spec::kScalesResults) {
          most[k] |= kSpecial;
        }
      }
    }
    FindMost(most);
    int exponents[4];
    float scales[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      exponents[k] = ScaleExponent(shared_.of_all[place() + k] & ~kSpecial);
      scales[k] = PowerOfTwo(exponents[k]);
    }
#pragma unroll kKeeps ? kRounds : 4
    for (int round = 0; round < kRounds; ++round) {
      Numbers& numbers = kept[kKeeps ? round : 0];
      if constexpr (!kKeeps) Read<kAligned>(round, numbers);
#pragma unroll
      for (int k = 0; k < 4; ++k) numbers[k] *= scales[k];
      Store(round, numbers);
    }
    if (first_ > 0 || position_ >= Lines::kPlane) return;
    StoreFactors(t_.factors, exponents);
    if constexpr (Spec::kScalesResults) ScaleResults();
  }

  // Of the positions.
  __device__ void StoreFactors(float* factors,
                               const int (&exponents)[4]) const {
    *reinterpret_cast<float4*>(factors + (image_ * Lines::kPlane + position_)) =
        make_float4(PowerOfTwo(-exponents[0]), PowerOfTwo(-exponents[1]),
                    PowerOfTwo(-exponents[2]), PowerOfTwo(-exponents[3]));
  }

  // Chooses scales for what the convolution makes of the positions.
  __device__ void ScaleResults() const {
    const auto* const sides = reinterpret_cast<const BoundSide*>(t_.bounds);
    const ResultBound bound = {sides[0], sides[1], false};
    int exponents[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const unsigned all = shared_.of_all[place() + k];
      exponents[k] = BoundedExponent(
          bound.Of(__uint_as_float(all & ~kSpecial), (all & kSpecial) != 0));
    }
    StoreFactors(t_.result_factors, exponents);
    const auto scales_of = [&](int k) {
      return RoundedPair(PowerOfTwo(exponents[k]), PowerOfTwo(exponents[k + 1]),
                         BFloat16());
    };
    *reinterpret_cast<uint2*>(t_.result_scales +
                              (image_ * Lines::kPlane + position_)) =
        make_uint2(scales_of(0), scales_of(2));
  }

  __device__ bool HasChannel(int round) const {
    constexpr bool kWhole =
        kOfBlock % kStep == 0 && kChannels % Spec::kCluster == 0;
    return kWhole || first_ + round * kStep < end_;
  }

  // Zeros where there is no pixel.
  template <bool kAligned>
  __device__ void Read(int round, Numbers& numbers) const {
    const bool has_channel = HasChannel(round);
    const auto* const from =
        t_.input +
        (from_ + static_cast<Index>(first_ + round * kStep) * kInputPlane);
    if constexpr (kAligned) {
      using Four = Access<4 * sizeof(*t_.input)>;
      const bool reads = has_channel && pixels_ > 0;
      alignas(16) decltype(OneOf(t_.input)) elements[4] = {};
      if (reads) {
        *reinterpret_cast<Four*>(elements) =
            __ldg(reinterpret_cast<const Four*>(from));
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) numbers[k] = ToFloat(elements[k]);
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        numbers[k] = has_channel && k < pixels_ ? ToFloat(from[k]) : 0.0f;
      }
    }
  }
  // From the largest of this thread's channels to that of all channels, shared.
  __device__ void FindMost(const unsigned (&most)[4]) const {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      unsigned of_warp = most[k];
#pragma unroll
      for (int mask = kFours; mask < 32; mask *= 2) {
        of_warp = Larger(of_warp, __shfl_xor_sync(~0u, of_warp, mask));
      }
      if (threadIdx.x % 32 < kFours) {
        shared_.of_warps[threadIdx.x / 32][place() + k] = of_warp;
      }
    }
    __syncthreads();
    unsigned of_block = 0;
    if (threadIdx.x < kPositions) {
#pragma unroll
      for (const auto& of_warp : shared_.of_warps) {
        of_block = Larger(of_block, of_warp[threadIdx.x]);
      }
      if (Spec::kCluster > 1) {
        shared_.of_block[threadIdx.x] = of_block;
      } else {
        shared_.of_all[threadIdx.x] = of_block;
      }
    }
    if constexpr (Spec::kCluster > 1) FindMostOfCluster();
    __syncthreads();
  }

  __device__ void FindMostOfCluster() const {
    ptx::ClusterArrive();
    ptx::ClusterWait();
    if (threadIdx.x >= kPositions) return;
    unsigned all = 0;
#pragma unroll
    for (int rank = 0; rank < Spec::kCluster; ++rank) {
      const float other = ptx::LoadFromCluster(
          ptx::MapToRank(shared_.of_block + threadIdx.x, rank));
      all = Larger(all, __float_as_uint(other));
    }
    shared_.of_all[threadIdx.x] = all;
  }

  __device__ void Store(int round, const Numbers& numbers) const {
    if (!HasChannel(round) || position_ >= Lines::kPlane) return;
    const Index channel =
        static_cast<Index>(image_) * kChannels + first_ + round * kStep;
    auto* const to = t_.lines + (channel * Lines::kPlane + position_);
    const unsigned large[2] = {RoundedPair(numbers[0], numbers[1], Float16()),
                               RoundedPair(numbers[2], numbers[3], Float16())};
    *reinterpret_cast<uint2*>(to) = make_uint2(large[0], large[1]);
    if constexpr (Spec::kInputParts == 2) {
      *reinterpret_cast<uint2*>(to + Lines::kPart) =
          make_uint2(RestsOf(numbers[0], numbers[1], large[0]),
                     RestsOf(numbers[2], numbers[3], large[1]));
    }
  }

  const typename Spec::Tensors& t_;
  Shared& shared_;
  const int image_;
  const int position_;     // of the image's, the first of four
  const int first_, end_;  // channels
  int pixels_;             // of the row from that position on
  Index from_;             // of the first channel's plane
};

template <typename Spec>
__device__ void LayLines(const typename Spec::Tensors& t) {
  __shared__ typename LineLayer<Spec>::Shared shared;
  AwaitPrevious();
  LineLayer<Spec>(t, &shared).Run();
}

}  // namespace kiln
