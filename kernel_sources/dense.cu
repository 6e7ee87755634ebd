// A convolution whose filter is as large as its images, a linear layer:
//
//   output[n, c] = bias[c] + sum over k of input[n, k] * weight[c, k]
//
// input N x K, weight C x K, output N x C, contiguous, any storage types; k
// goes through channels, rows and columns. Of few images, so that tensor cores
// would mostly wait: Spec::kLanes lanes of a warp share the sums of
// Spec::kImages images and Spec::kResults results, of each of which a lane has
// a part, read in accesses of Spec::kVector elements side by side. Then each of
// these sums is a lane's.
#include "math.cuh"
#include "point.cuh"
#include "storage_types.cuh"
#include "vectors.cuh"

namespace kiln {

template <typename Spec>
struct DenseWork {
  using Input = typename Spec::Input;
  using Output = typename Spec::Output;
  using Index = typename Spec::Index;
  static constexpr int kInputs = Input::kC * Input::kH * Input::kW;
  static constexpr int kAcross =
      (Output::kC + Spec::kResults - 1) / Spec::kResults;
  static constexpr int kParts =
      kAcross * ((Output::kN + Spec::kImages - 1) / Spec::kImages);
  static constexpr int kSums = Spec::kImages * Spec::kResults;
  static_assert(kSums <= Spec::kLanes, "Each sum is a lane's in the end.");
  static_assert(kInputs % Spec::kVector == 0, "Rows are whole vectors.");
};

// The parts of all sums of some lanes.
template <typename Spec>
class DenseSums {
 public:
  using Work = DenseWork<Spec>;
  using Index = typename Spec::Index;

  __device__ DenseSums(int image, int result)
      : image_(image), result_(result) {}

  __device__ void Add(const typename Spec::Tensors& t, int lane,
                      bool is_aligned) {
#pragma unroll 2
    for (int k = lane * Spec::kVector; k < Work::kInputs;
         k += Spec::kLanes * Spec::kVector) {
      Vector<typename Spec::InputType, Spec::kVector> inputs[Spec::kImages];
      Vector<typename Spec::WeightType, Spec::kVector> weights[Spec::kResults];
      // Beyond the last one, it stands in: no branch delays a load.
#pragma unroll
      for (int j = 0; j < Spec::kResults; ++j) {
        Fetch(t.weight, Row(result_ + j, Spec::Output::kC) + k, is_aligned,
              &weights[j]);
      }
#pragma unroll
      for (int i = 0; i < Spec::kImages; ++i) {
        Fetch(t.input, Row(image_ + i, Spec::Output::kN) + k, is_aligned,
              &inputs[i]);
      }
      Multiply(inputs, weights);
    }
  }

  // Of all lanes together, number `lane` of them, by images and results.
  __device__ float Merged(int lane) {
    float own = 0.0f;
#pragma unroll
    for (int number = 0; number < Work::kSums; ++number) {
      float sum = sums_[number / Spec::kResults][number % Spec::kResults];
#pragma unroll
      for (int mask = Spec::kLanes / 2; mask > 0; mask /= 2) {
        sum += __shfl_xor_sync(~0u, sum, mask);
      }
      if (lane == number) own = sum;
    }
    return own;
  }

 private:
  static __device__ Index Row(int number, int count) {
    return static_cast<Index>(min(number, count - 1)) * Work::kInputs;
  }

  template <typename Inputs, typename Weights>
  __device__ void Multiply(const Inputs& inputs, const Weights& weights) {
#pragma unroll
    for (int e = 0; e < Spec::kVector; ++e) {
      float factors[Spec::kResults];
#pragma unroll
      for (int j = 0; j < Spec::kResults; ++j) {
        factors[j] = ToFloat(weights[j].elements[e]);
      }
#pragma unroll
      for (int i = 0; i < Spec::kImages; ++i) {
        const float element = ToFloat(inputs[i].elements[e]);
#pragma unroll
        for (int j = 0; j < Spec::kResults; ++j) {
          sums_[i][j] = fmaf(element, factors[j], sums_[i][j]);
        }
      }
    }
  }

  const int image_, result_;  // the first
  float sums_[Spec::kImages][Spec::kResults] = {};
};

template <typename Spec>
__device__ void Dense(const typename Spec::Tensors& t) {
  using Work = DenseWork<Spec>;
  using Index = typename Spec::Index;
  const int lane = threadIdx.x % Spec::kLanes;
  const int own = (blockIdx.x * Spec::kThreads + threadIdx.x) / Spec::kLanes;
  // All lanes of a warp merge sums, also beyond the last part.
  const int part = min(own, Work::kParts - 1);
  const int image = part / Work::kAcross * Spec::kImages;
  const int result = part % Work::kAcross * Spec::kResults;
  DenseSums<Spec> sums(image, result);
  if (AreAligned(t.input, t.weight)) {
    sums.Add(t, lane, true);
  } else {
    sums.Add(t, lane, false);
  }
  const float sum = sums.Merged(lane);
  const int n = image + lane / Spec::kResults;
  const int c = result + lane % Spec::kResults;
  const bool exists = own < Work::kParts && lane < Work::kSums &&
                      n < Spec::Output::kN && c < Spec::Output::kC;
  if (!exists) return;
  const auto at = PointAt<typename Spec::Output, Index>(n, c, 0, 0);
  Spec::Element(t, at, sum);
}

}  // namespace kiln
