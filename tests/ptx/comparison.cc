#include "tests/ptx/comparison.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>
#include <random>
#include <utility>

#include "fmt/format.h"
#include "jit/plan/plan_text.h"
#include "jit/plan/reference.h"
#include "jit/plan/reference_convert.h"

namespace kiln::ptx {
namespace {

// Multiplies rows, channels and images of an N x C x H x W tensor.
void Scale(const Dims& dims, const InputOptions& options,
           std::vector<double>* values) {
  if (dims.size() != 4) return;
  const std::vector<double>& rows = options.row_factors;
  const std::vector<double>& channels = options.channel_factors;
  const std::vector<double>& images = options.image_factors;
  for (size_t i = 0; i < values->size(); ++i) {
    const size_t row = i / dims[3] % dims[2];
    const size_t image = i / (dims[1] * dims[2] * dims[3]);
    const size_t channel = i / (dims[2] * dims[3]) % dims[1];
    (*values)[i] *= rows[row % rows.size()] *
                    channels[channel % channels.size()] *
                    images[image % images.size()];
  }
}

// Of weights such that sums of products have about the variance of the input.
double DeviationOf(const PlanInput& input) {
  const Dims& dims = input.desc.dims;
  if (input.role != InputRole::kParameter || dims.size() != 4) return 1;
  return 1 / std::sqrt(static_cast<double>(
                 std::max<int64_t>(NumElements(dims) / dims[0], 1)));
}

std::vector<char> RandomTensor(const PlanInput& input,
                               const InputOptions& options, bool is_first,
                               std::mt19937_64* random) {
  const TensorDesc& desc = input.desc;
  const bool has_specials =
      options.has_specials && input.role != InputRole::kParameter;
  std::normal_distribution<double> normal(0, DeviationOf(input));
  std::vector<double> values(NumElements(desc.dims));
  for (double& value : values) value = normal(*random);
  if (is_first) Scale(desc.dims, options, &values);
  if (has_specials && values.size() > 1) {
    values[values.size() / 3] = std::numeric_limits<double>::infinity();
    values[values.size() * 2 / 5] = std::numeric_limits<double>::quiet_NaN();
  }
  std::vector<char> bytes(SizeBytes(desc));
  ElementsFromDouble(desc.dtype, values.data(),
                     static_cast<int64_t>(values.size()), bytes.data());
  return bytes;
}

// Sums over the elements of all outputs.
struct Sums {
  double difference = 0;  // of squares
  double reference = 0;
  double largest = 0;
  int64_t count = 0;
};

void CompareOutput(size_t output, const std::vector<double>& expected,
                   const std::vector<double>& actual, Sums* sums,
                   Comparison* comparison) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const double e = expected[i];
    const double a = actual[i];
    if (!std::isfinite(e)) ++comparison->num_special;
    if (e == a || (e != e && a != a)) {
      if (std::isfinite(e)) sums->reference += e * e;
      ++sums->count;
      continue;
    }
    if (!std::isfinite(e) || !std::isfinite(a)) {
      if (comparison->num_wrong++ > 0) continue;
      comparison->first_wrong = fmt::format(
          "output {}, element {} is {}, expected {}", output, i, a, e);
      continue;
    }
    const double difference = std::abs(a - e);
    sums->difference += difference * difference;
    sums->largest = std::max(sums->largest, difference);
    sums->reference += e * e;
    ++sums->count;
  }
}

absl::StatusOr<ReferenceRun> Evaluate(const CanonicalPlan& canonical,
                                      const InputOptions& inputs) {
  const Plan& plan = canonical.plan;
  std::mt19937_64 random(inputs.seed);
  ReferenceRun run;
  std::vector<const void*> input_pointers;
  for (const PlanInput& input : plan.inputs) {
    run.inputs.push_back(
        RandomTensor(input, inputs, run.inputs.empty(), &random));
    input_pointers.push_back(run.inputs.back().data());
  }
  std::vector<double*> output_pointers;
  for (const PlanOutput& output : plan.outputs) {
    const Dims& dims = canonical.values[output.value.index].dims;
    run.outputs.emplace_back(NumElements(dims));
    output_pointers.push_back(run.outputs.back().data());
  }
  const absl::Status status =
      EvaluateReferenceToDouble(plan, input_pointers, output_pointers);
  if (!status.ok()) return status;
  return run;
}

}  // namespace

double ToleranceOf(const CanonicalPlan& plan) {
  double tolerance = plan.plan.grade == Grade::kFp32 ? 2e-6 : 3e-3;
  for (const PlanOutput& output : plan.plan.outputs) {
    if (output.dtype == DataType::kF16) tolerance = std::max(tolerance, 1e-3);
    if (output.dtype == DataType::kBF16) tolerance = std::max(tolerance, 4e-3);
  }
  return tolerance;
}

absl::StatusOr<ReferenceRun> RunReference(const CanonicalPlan& canonical,
                                          const InputOptions& inputs) {
  // A plan in one grade, with special inputs and without, is often followed by
  // the same in another.
  constexpr size_t kKept = 2;
  using Key = std::pair<std::string, InputOptions>;
  static auto& known = *new std::deque<std::pair<Key, ReferenceRun>>;
  Plan plan = canonical.plan;
  plan.grade = Grade::kFp32;
  const Key key(ToText(plan), inputs);
  for (const auto& [of, run] : known) {
    if (of == key) return run;
  }
  absl::StatusOr<ReferenceRun> run = Evaluate(canonical, inputs);
  if (!run.ok()) return run;
  known.emplace_back(key, *run);
  if (known.size() > kKept) known.pop_front();
  return run;
}

absl::StatusOr<Comparison> CompareWithReference(const PlanKernels& kernels,
                                                const ReferenceRun& reference,
                                                const PlanRunOptions& options) {
  const CanonicalPlan& canonical = kernels.canonical;
  const Plan& plan = canonical.plan;
  std::vector<std::vector<char>> slots = reference.inputs;
  for (const PlanOutput& output : plan.outputs) {
    const Dims& dims = canonical.values[output.value.index].dims;
    slots.emplace_back(SizeBytes({output.dtype, dims}), '\xff');
  }

  const auto start = std::chrono::steady_clock::now();
  const absl::Status status = RunOnProcessor(kernels, &slots, options);
  if (!status.ok()) return status;
  Comparison comparison;
  comparison.run_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();

  Sums sums;
  for (size_t o = 0; o < plan.outputs.size(); ++o) {
    const std::vector<double>& expected = reference.outputs[o];
    std::vector<double> actual(expected.size());
    ElementsToDouble(plan.outputs[o].dtype,
                     slots[plan.inputs.size() + o].data(),
                     static_cast<int64_t>(actual.size()), actual.data());
    CompareOutput(o, expected, actual, &sums, &comparison);
  }
  const double count = std::max<double>(1, static_cast<double>(sums.count));
  const double norm = std::max(std::sqrt(sums.reference), 1e-30);
  comparison.norm_error = std::sqrt(sums.difference) / norm;
  comparison.max_error = sums.largest / (norm / std::sqrt(count));
  return comparison;
}

}  // namespace kiln::ptx
