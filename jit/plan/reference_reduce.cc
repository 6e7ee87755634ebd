#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "jit/plan/reference_ops.h"
#include "jit/plan/validate.h"

namespace kiln {
namespace {

constexpr double kDoubleInfinity = std::numeric_limits<double>::infinity();

// Results per range: a range of one-element reductions still hides its cost.
constexpr int64_t kElementsOfTask = 1024;

// A loop over the elements that give one result, and one over results. Both
// have kMaxRank dimensions; those that do not apply have extent 1.
struct Loops {
  std::array<int64_t, kMaxRank> stride;  // of the input, in elements
  std::array<int64_t, kMaxRank> kept;
  std::array<int64_t, kMaxRank> reduced;
  int64_t results = 1;
  int64_t elements = 1;  // of one result
};

// `dim` may count from the end; empty means every dimension.
Loops LoopsOver(const Dims& dims, const std::vector<int64_t>& dim) {
  const auto rank = static_cast<int64_t>(dims.size());
  Loops loops;
  loops.kept.fill(1);
  loops.reduced.fill(1);
  int64_t stride = 1;
  for (int64_t i = kMaxRank; i-- > 0;) {
    const int64_t d = i - (kMaxRank - rank);
    const int64_t extent = d < 0 ? 1 : dims[d];
    loops.stride[i] = stride;
    stride *= extent;
    const bool is_reduced =
        dim.empty() || std::find_if(dim.begin(), dim.end(), [&](int64_t j) {
                         return (j < 0 ? j + rank : j) == d;
                       }) != dim.end();
    (is_reduced ? loops.reduced : loops.kept)[i] = extent;
  }
  for (int64_t extent : loops.kept) loops.results *= extent;
  for (int64_t extent : loops.reduced) loops.elements *= extent;
  return loops;
}

// Where the elements of result `index` begin in the input.
int64_t BaseOf(const Loops& loops, int64_t index) {
  int64_t base = 0;
  for (int64_t i = kMaxRank; i-- > 0;) {
    base += index % loops.kept[i] * loops.stride[i];
    index /= loops.kept[i];
  }
  return base;
}

// Calls visit(offset from the base) for every element of one result.
template <typename Visit>
void ForEachElement(const Loops& loops, const Visit& visit) {
  const auto& [a, b, c, d] = loops.reduced;
  const auto& [sa, sb, sc, sd] = loops.stride;
  for (int64_t i = 0; i < a; ++i) {
    for (int64_t j = 0; j < b; ++j) {
      for (int64_t k = 0; k < c; ++k) {
        const int64_t row = i * sa + j * sb + k * sc;
        for (int64_t l = 0; l < d; ++l) visit(row + l * sd);
      }
    }
  }
}

double Sum(const Loops& loops, const double* from) {
  double sum = 0.0;
  ForEachElement(loops, [&](int64_t i) { sum += from[i]; });
  return sum;
}

double Mean(const Loops& loops, const double* from) {
  return Sum(loops, from) / static_cast<double>(loops.elements);
}

double Amax(const Loops& loops, const double* from) {
  double max = -kDoubleInfinity;
  ForEachElement(loops, [&](int64_t i) { max = MaximumOf(max, from[i]); });
  return max;
}

double Amin(const Loops& loops, const double* from) {
  double min = kDoubleInfinity;
  ForEachElement(loops, [&](int64_t i) { min = MinimumOf(min, from[i]); });
  return min;
}

// An infinite maximum is not subtracted: inf - inf would be NaN where the
// result is the maximum itself.
double LogSumExp(const Loops& loops, const double* from) {
  const double max = Amax(loops, from);
  const double shift = std::isinf(max) ? 0.0 : max;
  double sum = 0.0;
  ForEachElement(loops, [&](int64_t i) { sum += std::exp(from[i] - shift); });
  return std::log(sum) + shift;
}

using Fold = double (*)(const Loops&, const double*);

Fold FoldOf(OpKind kind) {
  switch (kind) {
    case OpKind::kSum:
      return Sum;
    case OpKind::kMean:
      return Mean;
    case OpKind::kAmax:
      return Amax;
    case OpKind::kAmin:
      return Amin;
    default:
      return LogSumExp;
  }
}

}  // namespace

double MaximumOf(double a, double b) {
  if (std::isnan(a)) return a;
  return b > a || std::isnan(b) ? b : a;
}

double MinimumOf(double a, double b) {
  if (std::isnan(a)) return a;
  return b < a || std::isnan(b) ? b : a;
}

bool ReferenceReduce(const Op& op, ReferenceOperands operands,
                     const ReferenceWorkers& workers, ReferenceTensor* result) {
  const ReferenceTensor& input = *operands[0];
  const Loops loops =
      LoopsOver(input.dims, std::get<ReduceAttributes>(op.attributes).dim);
  const Fold fold = FoldOf(op.kind);
  const int64_t grain = std::max<int64_t>(1, kElementsOfTask / loops.elements);
  return workers.Run(loops.results, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      result->data[i] = fold(loops, &input.data[BaseOf(loops, i)]);
    }
  });
}

// output = exp(input - max) / sum of exp(input - max) along one dimension.
bool ReferenceSoftmax(const Op& op, ReferenceOperands operands,
                      const ReferenceWorkers& workers,
                      ReferenceTensor* result) {
  const ReferenceTensor& input = *operands[0];
  const Loops loops =
      LoopsOver(input.dims, {std::get<SoftmaxAttributes>(op.attributes).dim});
  const auto normalize = [&](int64_t base) {
    const double* const from = &input.data[base];
    double* const to = &result->data[base];
    const double max = Amax(loops, from);
    double sum = 0.0;
    ForEachElement(loops, [&](int64_t i) {
      to[i] = std::exp(from[i] - max);
      sum += to[i];
    });
    ForEachElement(loops, [&](int64_t i) { to[i] /= sum; });
  };
  const int64_t grain = std::max<int64_t>(1, kElementsOfTask / loops.elements);
  return workers.Run(loops.results, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) normalize(BaseOf(loops, i));
  });
}

}  // namespace kiln
