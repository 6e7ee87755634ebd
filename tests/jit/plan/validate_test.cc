// Every error class of the validator: code, field path, value and limit.
#include "jit/plan/validate.h"

#include <gtest/gtest.h>

#include <functional>

#include "jit/plan/errors.h"
#include "tests/jit/plan/parse_plan.h"

namespace kiln {
namespace {

void ExpectError(const Plan& plan, absl::StatusCode code,
                 const std::string& field, const std::string& value,
                 const std::string& limit) {
  const absl::Status status = ValidatePlan(plan).status();
  const ErrorDetail detail = DetailOf(status);
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_EQ(detail.field, field) << status;
  EXPECT_EQ(detail.value, value) << status;
  EXPECT_EQ(detail.limit, limit) << status;
  const std::string message(status.message());
  for (const std::string& part : {field, value, limit}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

void ExpectInvalid(const Plan& plan, const std::string& field,
                   const std::string& value, const std::string& limit) {
  ExpectError(plan, absl::StatusCode::kInvalidArgument, field, value, limit);
}

// One op, given as text, that the validator refuses.
struct Row {
  std::string inputs;
  std::string call;
  std::string field;
  std::string value;
  std::string limit;
};

void ExpectAllInvalid(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.call);
    ExpectInvalid(
        MustParsePlan(row.inputs + "\ny = " + row.call + "\noutput y\n"),
        row.field, row.value, row.limit);
  }
}

const char kBase[] =
    "input x: f32[2,4,8,8]\n"
    "param w: f32[4,4,3,3]\n"
    "y = conv2d(x, w)\n"
    "z = relu(y)\n"
    "output z\n";

// The base plan after `change`.
Plan Changed(const std::function<void(Plan*)>& change) {
  Plan plan = MustParsePlan(kBase);
  change(&plan);
  return plan;
}

TEST(ValidateTest, TypesOfEveryValueByIndex) {
  const auto values = ValidatePlan(MustParsePlan(kBase));
  ASSERT_TRUE(values.ok()) << values.status();
  ASSERT_EQ(values->size(), 4u);
  EXPECT_EQ(ToString((*values)[2]), "f32[2,4,6,6]");
}

TEST(ValidateTest, CountsAreBounded) {
  ExpectInvalid(Changed([](Plan* p) { p->outputs.clear(); }), "outputs", "0",
                "1 to 32");
  ExpectInvalid(Changed([](Plan* p) { p->outputs.resize(33); }), "outputs",
                "33", "1 to 32");
  ExpectInvalid(Changed([](Plan* p) { p->inputs.resize(33); }), "inputs", "33",
                "0 to 32");
  ExpectInvalid(Changed([](Plan* p) { p->ops.resize(65); }), "ops", "65",
                "0 to 64");
}

TEST(ValidateTest, SixtyFourOpsAndThirtyTwoInputsAreAllowed) {
  Plan plan = MustParsePlan("input x: f32[2]\noutput x\n");
  plan.inputs.resize(32, plan.inputs[0]);
  plan.ops.resize(64, {OpKind::kRelu, "", {ValueId{0}}, {}});
  plan.outputs.resize(32, plan.outputs[0]);
  EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan).status();
}

TEST(ValidateTest, InputMayBeAnOutputAndAnOutputMayRepeat) {
  const Plan plan = MustParsePlan("input x: f32[2]\noutput x\noutput x: f16\n");
  EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan).status();
}

TEST(ValidateTest, EnumsAreKnown) {
  ExpectInvalid(Changed([](Plan* p) { p->grade = static_cast<Grade>(7); }),
                "grade", "7", "fp32 (1) or tf32 (2)");
  ExpectInvalid(
      Changed([](Plan* p) { p->inputs[1].role = static_cast<InputRole>(0); }),
      "inputs[1].role", "0", "activation (1) or parameter (2)");
  ExpectInvalid(Changed([](Plan* p) {
                  p->inputs[0].desc.dtype = static_cast<DataType>(9);
                }),
                "inputs[0].desc.dtype", "9", "f32, f16 or bf16");
  ExpectInvalid(
      Changed([](Plan* p) { p->outputs[0].dtype = static_cast<DataType>(0); }),
      "outputs[0].dtype", "0", "f32, f16 or bf16");
  ExpectInvalid(Changed([](Plan* p) {
                  p->ops[1].kind = OpKind::kCast;
                  p->ops[1].attributes =
                      CastAttributes{static_cast<DataType>(4)};
                }),
                "ops[1].cast.dtype", "4", "f32, f16 or bf16");
  ExpectInvalid(Changed([](Plan* p) {
                  p->ops[1].kind = OpKind::kGelu;
                  p->ops[1].attributes =
                      GeluAttributes{static_cast<GeluApproximate>(2)};
                }),
                "ops[1].gelu.approximate", "2", "none (0) or tanh (1)");
}

TEST(ValidateTest, UnknownOpIsUnimplemented) {
  ExpectError(
      Changed([](Plan* p) { p->ops[1].kind = static_cast<OpKind>(999); }),
      absl::StatusCode::kUnimplemented, "ops[1].kind", "999",
      "the numbers of docs/plan-language.md");
}

TEST(ValidateTest, NamesAreShortAndPlain) {
  const std::string limit = "at most 64 of A-Z a-z 0-9 _ . -";
  ExpectInvalid(Changed([](Plan* p) { p->inputs[0].name = "a b"; }),
                "inputs[0].name", "'a b'", limit);
  ExpectInvalid(Changed([](Plan* p) { p->inputs[0].name = "a\n'\xc3\\"; }),
                "inputs[0].name", "'a\\x0a\\x27\\xc3\\x5c'", limit);
  ExpectInvalid(
      Changed([](Plan* p) { p->inputs[0].name = std::string(65, '+'); }),
      "inputs[0].name", "'" + std::string(64, '+') + "...'", limit);
  ExpectInvalid(Changed([](Plan* p) { p->ops[1].name = std::string(65, 'a'); }),
                "ops[1].name", "65 characters", limit);
  const Plan plan = Changed([](Plan* p) {
    p->inputs[0].name = "layer1.0-conv_A";
    p->ops[0].name = std::string(64, 'a');
    p->ops[1].name = "";
  });
  EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan).status();
}

TEST(ValidateTest, ExtentsOfInputsAreBounded) {
  const auto with_dims = [](Dims dims) {
    return Changed([&](Plan* p) { p->inputs[1].desc.dims = dims; });
  };
  ExpectInvalid(with_dims({4, 0}), "inputs[1].desc.dims[1]", "0",
                "1 to 2147483647");
  ExpectInvalid(with_dims({-3}), "inputs[1].desc.dims[0]", "-3",
                "1 to 2147483647");
  ExpectInvalid(with_dims({int64_t{1} << 31}), "inputs[1].desc.dims[0]",
                "2147483648", "1 to 2147483647");
  ExpectInvalid(with_dims({1, 1, 1, 1, 1}), "inputs[1].desc.dims", "rank 5",
                "rank 0 to 4");
  ExpectInvalid(with_dims({int64_t{1} << 30, 257}), "inputs[1].desc.dims",
                "1103806595072 bytes as f32", "at most 1099511627776 bytes");
  ExpectInvalid(with_dims({2147483647, 2147483647, 2147483647, 2147483647}),
                "inputs[1].desc.dims",
                "85070591571778290947995441078751723524 bytes as f32",
                "at most 1099511627776 bytes");
}

TEST(ValidateTest, LargestTensorIsAllowed) {
  const Plan plan =
      MustParsePlan("input x: f32[1073741824,256]\ny = relu(x)\noutput y\n");
  EXPECT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan).status();
}

TEST(ValidateTest, ExtentsOfResultsAreBounded) {
  ExpectAllInvalid({
      {"input x: f32[1048576,1]\ninput z: f32[1048576]", "add(x, z)",
       "ops[0].result.dims", "4398046511104 bytes as f32",
       "at most 1099511627776 bytes"},
      {"input x: f32[1,1,2147483647,1]\nparam w: f32[1,1,2,1]",
       "conv_transpose2d(x, w)", "ops[0]", "2147483648", "1 to 2147483647"},
      {"input x: f32[1,2,1,1]\nparam w: f32[2,1073741824,1,1]",
       "conv_transpose2d(x, w, groups=2)", "ops[0]", "2147483648",
       "1 to 2147483647"},
      {"input x: f32[1,1,2147483647,1]\nparam w: f32[1,1,1,1]",
       "conv2d(x, w, padding=2147483647)", "ops[0].result.dims[2]",
       "6442450941", "1 to 2147483647"},
  });
}

TEST(ValidateTest, OperandsAreEarlierValuesOfTheRightNumber) {
  const auto with_operand = [](Operand operand) {
    return Changed([&](Plan* p) { p->ops[1].operands[0] = operand; });
  };
  ExpectInvalid(with_operand(ValueId{3}), "ops[1].operands[0]", "value 3",
                "value 0 to 2");
  ExpectInvalid(with_operand(ValueId{-1}), "ops[1].operands[0]", "value -1",
                "value 0 to 2");
  ExpectInvalid(with_operand(std::monostate()), "ops[1].operands[0]", "nothing",
                "a value");
  ExpectInvalid(with_operand(2.5f), "ops[1].operands[0]", "2.5", "a value");
  ExpectInvalid(Changed([](Plan* p) { p->ops[0].operands.pop_back(); }),
                "ops[0].operands", "2", "3");
  ExpectInvalid(Changed([](Plan* p) { p->outputs[0].value = ValueId{4}; }),
                "outputs[0].value", "value 4", "value 0 to 3");
  ExpectInvalid(Changed([](Plan* p) {
                  p->inputs.clear();
                  p->ops.resize(1);
                }),
                "ops[0].operands[0]", "value 0", "no value is defined yet");
}

TEST(ValidateTest, AttributesBelongToTheKind) {
  ExpectInvalid(
      Changed([](Plan* p) { p->ops[0].attributes = GroupNormAttributes(); }),
      "ops[0].attributes", "group_norm", "conv");
  ExpectInvalid(
      Changed([](Plan* p) { p->ops[0].attributes = std::monostate(); }),
      "ops[0].attributes", "none", "conv");
}

TEST(ValidateTest, ConvRules) {
  const std::string x = "input x: f32[2,4,8,8]\nparam w: f32[4,4,3,3]";
  const std::string dim = "1 to 2147483647";
  ExpectAllInvalid({
      {x, "conv2d(x, w, stride=[1,0])", "ops[0].conv.stride[1]", "0", dim},
      {x, "conv2d(x, w, padding=[-1,0])", "ops[0].conv.padding[0]", "-1",
       "0 to 2147483647"},
      {x, "conv2d(x, w, dilation=0)", "ops[0].conv.dilation[0]", "0", dim},
      {x, "conv2d(x, w, groups=0)", "ops[0].conv.groups", "0", dim},
      {x, "conv2d(x, w, groups=3)", "ops[0].conv.groups", "3",
       "a divisor of 4"},
      {x, "conv2d(x, w, groups=2)", "ops[0].operands[1]", "f32[4,4,3,3]", "2"},
      {x, "conv2d(x, w, dilation=4)", "ops[0].operands[1]", "9", "at most 8"},
      {"input x: f32[2,4,8,8]\nparam w: f32[3,2,3,3]", "conv2d(x, w, groups=2)",
       "ops[0].conv.groups", "2", "a divisor of 3"},
      {"input x: f32[4,8,8]\nparam w: f32[4,4,3,3]", "conv2d(x, w)",
       "ops[0].operands[0]", "f32[4,8,8] of rank 3", "rank 4"},
      {"input x: f32[2,4,8,8]\nparam w: f32[4,4,3]", "conv2d(x, w)",
       "ops[0].operands[1]", "f32[4,4,3] of rank 3", "rank 4"},
      {x + "\nparam b: f32[5]", "conv2d(x, w, b)", "ops[0].operands[2]",
       "f32[5]", "f32[4]"},
  });
}

TEST(ValidateTest, ConvTransposeRules) {
  const std::string x = "input x: f32[2,4,8,8]\nparam w: f32[4,6,3,3]";
  ExpectAllInvalid({
      {x, "conv_transpose2d(x, w, stride=2, output_padding=2)",
       "ops[0].conv.output_padding[0]", "2", "0 to 1"},
      {x, "conv_transpose2d(x, w, output_padding=[0,1])",
       "ops[0].conv.output_padding[1]", "1", "0 to 0"},
      {x, "conv_transpose2d(x, w, groups=3)", "ops[0].conv.groups", "3",
       "a divisor of 4"},
      {x, "conv_transpose2d(x, w, padding=5)", "ops[0]", "0",
       "1 to 2147483647"},
      {"input x: f32[2,3,8,8]\nparam w: f32[4,6,3,3]", "conv_transpose2d(x, w)",
       "ops[0].operands[1]", "f32[4,6,3,3]", "3"},
      {x + "\nparam b: f32[6]", "conv_transpose2d(x, w, b, groups=2)",
       "ops[0].operands[2]", "f32[6]", "f32[12]"},
  });
}

TEST(ValidateTest, NormRules) {
  const std::string x = "input x: f32[2,6,8]\nparam m: f32[6]";
  ExpectAllInvalid({
      {x, "group_norm(x, num_groups=0)", "ops[0].group_norm.num_groups", "0",
       "1 to 2147483647"},
      {x, "group_norm(x, num_groups=4)", "ops[0].group_norm.num_groups", "4",
       "a divisor of 6"},
      {x, "group_norm(x, num_groups=2, eps=-1)", "ops[0].group_norm.eps", "-1",
       "finite and at least 0"},
      {x, "group_norm(x, num_groups=2, eps=nan)", "ops[0].group_norm.eps",
       "nan", "finite and at least 0"},
      {x, "batch_norm(x, m, m, eps=inf)", "ops[0].batch_norm.eps", "inf",
       "finite and at least 0"},
      {x, "batch_norm(x, m, m, eps=0)", "ops[0].batch_norm.eps", "0",
       "finite and above 0"},
      {x + "\nparam w: f32[3]", "group_norm(x, w, num_groups=2)",
       "ops[0].operands[1]", "f32[3]", "f32[6]"},
      {x + "\nparam w: f32[1,6]", "batch_norm(x, m, w)", "ops[0].operands[2]",
       "f32[1,6]", "f32[6]"},
      {"input x: f32[6]", "group_norm(x, num_groups=2)", "ops[0].operands[0]",
       "f32[6] of rank 1", "rank 2 to 4"},
  });
}

TEST(ValidateTest, PoolRules) {
  const std::string x = "input x: f32[2,6,8,5]";
  const std::string dim = "1 to 2147483647";
  ExpectAllInvalid({
      {x, "max_pool2d(x, kernel_size=0)", "ops[0].pool.kernel_size[0]", "0",
       dim},
      {x, "max_pool2d(x, kernel_size=2, stride=[1,-2])",
       "ops[0].pool.stride[1]", "-2", dim},
      {x, "max_pool2d(x, kernel_size=3, padding=2)", "ops[0].pool.padding[0]",
       "2", "0 to 1"},
      {x, "avg_pool2d(x, kernel_size=3, padding=-1)", "ops[0].pool.padding[0]",
       "-1", "0 to 1"},
      {x, "max_pool2d(x, kernel_size=2, dilation=0)", "ops[0].pool.dilation[0]",
       "0", dim},
      {x, "avg_pool2d(x, kernel_size=2, divisor_override=0)",
       "ops[0].pool.divisor_override", "0", "any number but 0"},
      {x, "avg_pool2d(x, kernel_size=2, divisor_override=2147483648)",
       "ops[0].pool.divisor_override", "2147483648",
       "-2147483647 to 2147483647"},
      {x, "max_pool2d(x, kernel_size=[8,6])", "ops[0].pool.kernel_size[1]", "6",
       "at most 5"},
      {"input x: f32[6,8,8]", "max_pool2d(x, kernel_size=2)",
       "ops[0].operands[0]", "f32[6,8,8] of rank 3", "rank 4"},
  });
}

// What text cannot spell, and a message can.
TEST(ValidateTest, AttributesOfAnotherOpStandAtTheirDefaults) {
  const auto pool = [](const char* op, auto change) {
    Plan plan = MustParsePlan(std::string("input x: f32[2,6,8,5]\ny = ") + op +
                              "(x, kernel_size=2)\noutput y\n");
    change(&std::get<PoolAttributes>(plan.ops[0].attributes));
    return plan;
  };
  ExpectInvalid(pool("avg_pool2d",
                     [](PoolAttributes* a) {
                       a->dilation = {1, 2};
                     }),
                "ops[0].pool.dilation[1]", "2", "1");
  ExpectInvalid(
      pool("max_pool2d", [](PoolAttributes* a) { a->divisor_override = 3; }),
      "ops[0].pool.divisor_override", "3", "none");
  ExpectInvalid(pool("max_pool2d",
                     [](PoolAttributes* a) { a->count_include_pad = false; }),
                "ops[0].pool.count_include_pad", "false", "true");
  ExpectInvalid(
      Changed([](Plan* p) {
        std::get<ConvAttributes>(p->ops[0].attributes).output_padding = {1, 0};
      }),
      "ops[0].conv.output_padding[0]", "1", "0");
}

TEST(ValidateTest, ReduceRules) {
  const std::string x = "input x: f32[2,6,8]";
  ExpectAllInvalid({
      {x, "sum(x, dim=3)", "ops[0].reduce.dim[0]", "3", "-3 to 2"},
      {x, "sum(x, dim=[0,-4])", "ops[0].reduce.dim[1]", "-4", "-3 to 2"},
      {x, "amax(x, dim=[1,-2])", "ops[0].reduce.dim[1]", "-2",
       "each dimension once"},
      {x, "softmax(x, dim=5)", "ops[0].softmax.dim", "5", "-3 to 2"},
      {"input x: f32[]", "sum(x, dim=1)", "ops[0].reduce.dim[0]", "1",
       "-1 to 0"},
  });
}

TEST(ValidateTest, PointwiseRules) {
  const std::string x = "input x: f32[2,6]";
  ExpectAllInvalid({
      {x, "clamp(x)", "ops[0].clamp", "none", "min, max or both"},
      {x, "hardtanh(x, min_val=2)", "ops[0].clamp.min", "2", "at most 1"},
      {x, "add(1, 2)", "ops[0].operands[1]", "a constant", "a value"},
      {x + "\ninput z: f32[2,5]", "mul(x, z)", "ops[0].operands[1]", "f32[2,5]",
       "f32[2,6] or extents of 1"},
  });
  const Plan crossed =
      MustParsePlan("input x: f32[2]\ny = clamp(x, min=3, max=1)\noutput y\n");
  EXPECT_TRUE(ValidatePlan(crossed).ok()) << ValidatePlan(crossed).status();
}

}  // namespace
}  // namespace kiln
