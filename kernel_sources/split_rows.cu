// Leaves the rows of a matrix of f32 as parts of 16 bits for linear.cu
// (split_parts.cuh). A row's numbers share a scale, by the largest finite one;
// factors undo it. Infinities and NaNs stay what they are in the first part,
// and are zeros in the second; of a matrix that meets them (weights, which are
// taken to be finite), parts of a number have its sign, and are not 0 unless it
// is.
#include "conv_halves.cuh"
#include "split_parts.cuh"
#include "storage_types.cuh"

namespace kiln {

// kLanes threads have a row.
template <typename Spec>
class RowSplitter {
 public:
  struct Shared {
    unsigned of_warps[Spec::kThreads / 32];
  };

  __device__ RowSplitter(const typename Spec::Tensors& t, Shared* shared)
      : t_(t),
        shared_(*shared),
        row_(static_cast<int>(blockIdx.x) * kRowsOfBlock +
             static_cast<int>(threadIdx.x) / Spec::kLanes),
        lane_(static_cast<int>(threadIdx.x) % Spec::kLanes),
        exists_(row_ < Spec::kRows) {}

  __device__ void Run() const {
    const bool is_aligned =
        reinterpret_cast<unsigned long long>(t_.matrix) % sizeof(float4) == 0;
    if (Spec::kNumbers % 4 == 0 && is_aligned) {
      Split<true>();
    } else {
      Split<false>();
    }
  }

 private:
  using Parts = SplitParts<Spec::kRows, Spec::kNumbers, Spec::kHalves>;
  using Numbers = float[4];

  static constexpr int kRowsOfBlock = Spec::kThreads / Spec::kLanes;
  static constexpr int kFours = Parts::kOctets * 2;
  static constexpr int kRounds = (kFours + Spec::kLanes - 1) / Spec::kLanes;
  // Threads keep what they read, or read it twice.
  static constexpr bool kKeeps = kRounds <= 8;

  template <bool kAligned>
  __device__ void Split() const {
    Numbers kept[kKeeps ? kRounds : 1];
    unsigned most = 0;
#pragma unroll kKeeps ? kRounds : 4
    for (int round = 0; round < kRounds; ++round) {
      Numbers& numbers = kept[kKeeps ? round : 0];
      Read<kAligned>(round, numbers);
#pragma unroll
      for (int k = 0; k < 4; ++k) most = max(most, FiniteMagnitude(numbers[k]));
    }
    const int exponent = ScaleExponent(MostOfRow(most));
    if (!exists_) return;
#pragma unroll kKeeps ? kRounds : 4
    for (int round = 0; round < kRounds; ++round) {
      Numbers& numbers = kept[kKeeps ? round : 0];
      if constexpr (!kKeeps) Read<kAligned>(round, numbers);
      Store(round, PowerOfTwo(exponent), numbers);
    }
    if (lane_ == 0) t_.factors[row_] = PowerOfTwo(-exponent);
  }

  // Zeros where there are none.
  template <bool kAligned>
  __device__ void Read(int round, Numbers& numbers) const {
    const int first = (round * Spec::kLanes + lane_) * 4;
    const float* const from =
        t_.matrix + static_cast<long long>(row_) * Spec::kNumbers + first;
    const int count = exists_ ? Spec::kNumbers - first : 0;
    if constexpr (kAligned) {
      float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (count > 0) four = *reinterpret_cast<const float4*>(from);
      numbers[0] = four.x;
      numbers[1] = four.y;
      numbers[2] = four.z;
      numbers[3] = four.w;
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k) numbers[k] = k < count ? from[k] : 0.0f;
    }
  }

  // From the largest of this thread's numbers; called by all of a block.
  __device__ unsigned MostOfRow(unsigned most) const {
    most = LargestOfLanes<(Spec::kLanes < 32 ? Spec::kLanes : 32)>(most);
    if constexpr (Spec::kLanes > 32) {
      constexpr int kWarps = Spec::kLanes / 32;
      const int warp = threadIdx.x / 32;
      if (threadIdx.x % 32 == 0) shared_.of_warps[warp] = most;
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kWarps; ++i) {
        most = max(most, shared_.of_warps[warp / kWarps * kWarps + i]);
      }
    }
    return most;
  }

  __device__ void Store(int round, float scale, Numbers& numbers) const {
    const int four = round * Spec::kLanes + lane_;
    if (kFours % Spec::kLanes != 0 && four >= kFours) return;
    uint2* const to = Parts::PlaceOfFour(t_.parts, row_, four);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      numbers[k] = Spec::kHasOneSign ? ScaledAboveZero(numbers[k], scale)
                                     : numbers[k] * scale;
    }
    if constexpr (Spec::kHasOneSign) {
      Parts::StoreOfOneSign(numbers, to);
    } else {
      Parts::Store(numbers, to);
    }
  }

  const typename Spec::Tensors& t_;
  Shared& shared_;
  const int row_;
  const int lane_;
  const bool exists_;
};

template <typename Spec>
__device__ void SplitRows(const typename Spec::Tensors& t) {
  __shared__ typename RowSplitter<Spec>::Shared shared;
  RowSplitter<Spec>(t, &shared).Run();
}

}  // namespace kiln
