// The reference against PyTorch in double: tests/goldens/README.md.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "jit/plan/op_table.h"
#include "jit/plan/plan_text.h"
#include "jit/plan/reference.h"
#include "jit/plan/reference_convert.h"
#include "jit/plan/validate.h"
#include "tests/jit/reference/golden_file.h"

namespace kiln {
namespace {

const GoldenFile& Goldens() {
  static const absl::StatusOr<GoldenFile> file =
      ReadGoldenFile(KILN_GOLDEN_PATH);
  EXPECT_TRUE(file.ok()) << file.status();
  static const GoldenFile empty;
  return file.ok() ? *file : empty;
}

struct Evaluated {
  Plan plan;
  std::vector<std::vector<double>> outputs;
};

Evaluated Evaluate(const GoldenCase& golden) {
  const absl::StatusOr<Plan> plan = ParsePlanText(golden.plan);
  if (!plan.ok()) {
    ADD_FAILURE() << plan.status();
    return {};
  }
  const auto values = ValidatePlan(*plan);
  if (!values.ok() || plan->inputs.size() != golden.inputs.size()) {
    ADD_FAILURE() << values.status();
    return {};
  }
  std::vector<const void*> inputs;
  for (size_t i = 0; i < golden.inputs.size(); ++i) {
    EXPECT_EQ(static_cast<int64_t>(golden.inputs[i].size()),
              SizeBytes(plan->inputs[i].desc));
    inputs.push_back(golden.inputs[i].data());
  }
  Evaluated evaluated{*plan, {}};
  std::vector<double*> outputs;
  for (const PlanOutput& output : plan->outputs) {
    const Dims& dims = (*values)[output.value.index].dims;
    evaluated.outputs.emplace_back(NumElements(dims), 12345.0);
  }
  for (auto& output : evaluated.outputs) outputs.push_back(output.data());
  const absl::Status status = EvaluateReferenceToDouble(*plan, inputs, outputs);
  EXPECT_TRUE(status.ok()) << status;
  return evaluated;
}

constexpr double kEpsilon = 0x1p-53;  // one rounding of a double

// Roundings per element on either side: 2^7 terms of the longest sum here,
// and 2^6 of library functions, each a few ulp.
constexpr double kRoundings = (1 << 7) + (1 << 6);

// Norms divide by a spread down to a thousandth of their input's mean, and
// PyTorch folds the mean into the bias.
constexpr double kNormCondition = 1e3;

double LargestFinite(const std::vector<double>& values) {
  double largest = 0.0;
  for (double v : values) {
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  }
  return largest;
}

bool HasClass(const Plan& plan, std::initializer_list<OpClass> classes) {
  return std::any_of(plan.ops.begin(), plan.ops.end(), [&](const Op& op) {
    return std::find(classes.begin(), classes.end(),
                     FindOp(op.kind)->op_class) != classes.end();
  });
}

// A bound of the terms that are added up: the product of the largest inputs.
double LargestTerm(const Plan& plan, const GoldenCase& golden) {
  double product = 1.0;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const TensorDesc& desc = plan.inputs[i].desc;
    std::vector<double> elements(NumElements(desc.dims));
    ElementsToDouble(desc.dtype, golden.inputs[i].data(), elements.size(),
                     elements.data());
    product *= std::max(1.0, LargestFinite(elements));
  }
  return product;
}

// How far two evaluations in double may lie apart: absolute for sums, whose
// terms cancel; relative for plans of pointwise ops, apart from functions such
// as gelu in which 1 + f(x) cancels.
struct Tolerance {
  double absolute;
  double relative;
};

Tolerance ToleranceOf(const Plan& plan, const GoldenCase& golden,
                      const std::vector<double>& expected) {
  const double rounding = kRoundings * kEpsilon;
  if (!HasClass(plan, {OpClass::kConv, OpClass::kConvTranspose, OpClass::kPool,
                       OpClass::kReduce, OpClass::kGroupNorm,
                       OpClass::kBatchNorm, OpClass::kSoftmax})) {
    return {rounding, rounding};
  }
  double scale = LargestFinite(expected);
  if (HasClass(plan,
               {OpClass::kConv, OpClass::kConvTranspose, OpClass::kReduce})) {
    scale = std::max(scale, LargestTerm(plan, golden));
  }
  if (HasClass(plan, {OpClass::kGroupNorm})) scale *= kNormCondition;
  return {rounding * scale, 0.0};
}

void ExpectNear(const std::vector<double>& actual,
                const std::vector<double>& expected,
                const Tolerance& tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const double e = expected[i];
    if (std::isfinite(e)) {
      ASSERT_NEAR(actual[i], e,
                  tolerance.absolute + tolerance.relative * std::fabs(e))
          << "element " << i;
    } else {
      ASSERT_TRUE(std::isnan(e) ? std::isnan(actual[i]) : actual[i] == e)
          << "element " << i << ": reference " << actual[i] << ", PyTorch "
          << e;
    }
  }
}

TEST(GoldenTest, ReferenceComputesWhatPyTorchComputes) {
  RecordProperty("torch", Goldens().torch_version);
  for (const GoldenCase& golden : Goldens().cases) {
    SCOPED_TRACE(golden.name + "\n" + golden.plan);
    const Evaluated evaluated = Evaluate(golden);
    ASSERT_EQ(evaluated.outputs.size(), golden.outputs.size());
    for (size_t i = 0; i < golden.outputs.size(); ++i) {
      const std::vector<double>& expected = golden.outputs[i];
      ExpectNear(evaluated.outputs[i], expected,
                 ToleranceOf(evaluated.plan, golden, expected));
    }
  }
}

// An op that no case runs is an op whose meaning nobody has checked.
TEST(GoldenTest, EveryOpAndEveryTypeHasACase) {
  std::set<OpKind> ops;
  std::set<DataType> types;
  for (const GoldenCase& golden : Goldens().cases) {
    const absl::StatusOr<Plan> plan = ParsePlanText(golden.plan);
    ASSERT_TRUE(plan.ok()) << golden.name << ": " << plan.status();
    for (const Op& op : plan->ops) ops.insert(op.kind);
    for (const PlanInput& input : plan->inputs) types.insert(input.desc.dtype);
  }
  for (const OpInfo& info : AllOps()) {
    EXPECT_TRUE(ops.count(info.kind) != 0) << info.name;
  }
  EXPECT_EQ(types.size(), 3u);
}

TEST(GoldenFileTest, RefusesDamagedFiles) {
  const std::string header = std::string("KILNGOLD") +
                             std::string("\x01\0\0\0", 4) +
                             std::string(24, '\0');
  EXPECT_TRUE(ParseGoldenFile(header).ok());
  for (size_t size = 0; size < header.size(); ++size) {
    EXPECT_FALSE(ParseGoldenFile(header.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(ParseGoldenFile(header + "x").ok());
  std::string other = header;
  other[8] = 2;
  EXPECT_FALSE(ParseGoldenFile(other).ok());
}

}  // namespace
}  // namespace kiln
