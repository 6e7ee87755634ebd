#include <algorithm>
#include <array>
#include <cmath>

#include "jit/plan/reference_ops.h"

namespace kiln {
namespace {

// Elements summed one after another before their sum joins the total: keeps
// the error of a sum of 2^24 doubles near that of one of 2^14.
constexpr int64_t kSumBlock = 1024;

// The sum of f(i) for i in [0, count), in blocks of independent lanes.
template <typename Function>
double SumOf(int64_t count, const Function& f) {
  constexpr int64_t kLanes = 8;
  double total = 0.0;
  for (int64_t begin = 0; begin < count; begin += kSumBlock) {
    const int64_t end = std::min(begin + kSumBlock, count);
    std::array<double, kLanes> lanes = {};
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += f(i + lane);
    }
    for (; i < end; ++i) lanes[0] += f(i);
    for (double lane : lanes) total += lane;
  }
  return total;
}

double At(const ReferenceTensor* vector, int64_t index, double absent) {
  return vector == nullptr ? absent : vector->data[index];
}

// Elements of one channel of one sample.
int64_t PlaneSize(const ReferenceTensor& input) {
  return input.size() / (input.dims[0] * input.dims[1]);
}

}  // namespace

// output = (input - mean) / sqrt(variance + eps) * weight[c] + bias[c], with
// the mean and the biased variance of the group's channels in the sample.
bool ReferenceGroupNorm(const Op& op, ReferenceOperands operands,
                        const ReferenceWorkers& workers,
                        ReferenceTensor* result) {
  const auto& norm = std::get<GroupNormAttributes>(op.attributes);
  const ReferenceTensor& input = *operands[0];
  const int64_t channels = input.dims[1] / norm.num_groups;
  const int64_t plane = PlaneSize(input);
  const int64_t count = channels * plane;

  const auto normalize = [&](int64_t domain, int64_t) {
    const double* const from = &input.data[domain * count];
    double* const to = &result->data[domain * count];
    const double mean =
        SumOf(count, [&](int64_t i) { return from[i]; }) / count;
    const double variance =
        SumOf(count,
              [&](int64_t i) { return (from[i] - mean) * (from[i] - mean); }) /
        count;
    const double scale = 1.0 / std::sqrt(variance + norm.eps);
    const int64_t first = domain % norm.num_groups * channels;
    for (int64_t c = 0; c < channels; ++c) {
      const double weight = At(operands[1], first + c, 1.0);
      const double bias = At(operands[2], first + c, 0.0);
      for (int64_t i = c * plane; i < (c + 1) * plane; ++i) {
        to[i] = (from[i] - mean) * scale * weight + bias;
      }
    }
  };
  return workers.Run(input.dims[0] * norm.num_groups, 1, normalize);
}

// output = (input - running_mean[c]) / sqrt(running_var[c] + eps) * weight[c]
// + bias[c].
bool ReferenceBatchNorm(const Op& op, ReferenceOperands operands,
                        const ReferenceWorkers& workers,
                        ReferenceTensor* result) {
  const double eps = std::get<BatchNormAttributes>(op.attributes).eps;
  const ReferenceTensor& input = *operands[0];
  const int64_t plane = PlaneSize(input);

  const auto normalize = [&](int64_t index, int64_t) {
    const int64_t c = index % input.dims[1];
    const double mean = operands[1]->data[c];
    const double scale = 1.0 / std::sqrt(operands[2]->data[c] + eps);
    const double weight = At(operands[3], c, 1.0);
    const double bias = At(operands[4], c, 0.0);
    for (int64_t i = index * plane; i < (index + 1) * plane; ++i) {
      result->data[i] = (input.data[i] - mean) * scale * weight + bias;
    }
  };
  return workers.Run(input.dims[0] * input.dims[1], 1, normalize);
}

}  // namespace kiln
