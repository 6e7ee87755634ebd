#include "jit/plan/plan_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "jit/plan/errors.h"
#include "tests/jit/plan/parse_plan.h"
#include "tests/jit/plan/plan_generator.h"

namespace kiln {
namespace {

// The one op of a plan over x: f32[2,4,8,8] and w: f32[4].
Op ParseOp(const std::string& call) {
  return MustParsePlan("input x: f32[2,4,8,8]\nparam w: f32[4]\ny = " + call)
      .ops.at(0);
}

TEST(ParsePlanTextTest, ReadsEveryStatement) {
  const Plan plan = MustParsePlan(
      "# a comment\n"
      "grade tf32\n"
      "\n"
      "input x: f16[2,8,16,16]   # another\n"
      "param scale: f32[]\n"
      "y = mul(x, scale)\n"
      "output y: bf16\n"
      "output x");
  EXPECT_EQ(plan.grade, Grade::kTf32);
  ASSERT_EQ(plan.inputs.size(), 2u);
  EXPECT_EQ(plan.inputs[0], (PlanInput{"x",
                                       {DataType::kF16, {2, 8, 16, 16}},
                                       InputRole::kActivation}));
  EXPECT_EQ(plan.inputs[1],
            (PlanInput{"scale", {DataType::kF32, {}}, InputRole::kParameter}));
  ASSERT_EQ(plan.ops.size(), 1u);
  EXPECT_EQ(plan.ops[0].kind, OpKind::kMul);
  EXPECT_EQ(plan.ops[0].name, "y");
  EXPECT_EQ(plan.ops[0].operands,
            (std::vector<Operand>{ValueId{0}, ValueId{1}}));
  ASSERT_EQ(plan.outputs.size(), 2u);
  EXPECT_EQ(plan.outputs[0], (PlanOutput{ValueId{2}, DataType::kBF16}));
  EXPECT_EQ(plan.outputs[1], (PlanOutput{ValueId{0}, DataType::kF16}));
}

TEST(ParsePlanTextTest, OutputTypeDefaultsToThePromotedOne) {
  const Plan plan = MustParsePlan(
      "input x: f16[2]\ninput z: bf16[2]\ns = add(x, z)\nt = mul(x, 2)\n"
      "output s\noutput t\noutput z\n");
  EXPECT_EQ(plan.outputs[0].dtype, DataType::kF32);
  EXPECT_EQ(plan.outputs[1].dtype, DataType::kF16);
  EXPECT_EQ(plan.outputs[2].dtype, DataType::kBF16);
}

TEST(ParsePlanTextTest, OperandsByPositionOrName) {
  const std::vector<Operand> expected = {ValueId{0}, std::monostate(),
                                         ValueId{1}};
  EXPECT_EQ(ParseOp("group_norm(x, bias=w, num_groups=2)").operands, expected);
  EXPECT_EQ(ParseOp("group_norm(x, none, w, num_groups=2)").operands, expected);
  EXPECT_EQ(ParseOp("group_norm(num_groups=2, bias=w, input=x)").operands,
            expected);
}

TEST(ParsePlanTextTest, ConstantsInEitherPlaceOfABinaryOp) {
  EXPECT_EQ(ParseOp("sub(1.5, x)").operands,
            (std::vector<Operand>{1.5f, ValueId{0}}));
  EXPECT_EQ(ParseOp("sub(x, other=-2e-3)").operands,
            (std::vector<Operand>{ValueId{0}, -2e-3f}));
}

TEST(ParsePlanTextTest, FloatLiterals) {
  const auto constant = [](const std::string& literal) {
    return std::get<float>(ParseOp("add(x, " + literal + ")").operands[1]);
  };
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(constant("1"), 1.0f);
  EXPECT_EQ(constant("+.5"), 0.5f);
  EXPECT_EQ(constant("1e-5"), 1e-5f);
  EXPECT_EQ(constant("0.1"), 0.1f);
  EXPECT_EQ(constant("0x1.8p+1"), 3.0f);
  EXPECT_EQ(constant("-0x1p-149"), -std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(constant("inf"), inf);
  EXPECT_EQ(constant("-inf"), -inf);
  EXPECT_TRUE(std::isnan(constant("nan")));
  EXPECT_TRUE(std::signbit(constant("-0.0")));
}

TEST(ParsePlanTextTest, WhatIsAlmostAFloatIsNone) {
  for (const std::string text :
       {"0xinf", "-0xinf", "0xnan", "+0XNaN", "0xinfinity", "0x", "0x1p", "1e",
        "1_000", "1f", "1.2.3", "."}) {
    const absl::Status status =
        ParsePlanText("input x: f32[4]\ny = add(x, " + text + ")").status();
    EXPECT_EQ(std::string(status.message()),
              "line 2, column 12: unexpected token (got '" + text +
                  "', allowed: a number)");
  }
}

TEST(ParsePlanTextTest, AttributesByTheirPyTorchNames) {
  const auto conv = std::get<ConvAttributes>(
      ParseOp("conv2d(x, w, stride=[2,1], padding=(0, 3), groups=4)")
          .attributes);
  EXPECT_EQ(conv, (ConvAttributes{{2, 1}, {0, 3}, {0, 0}, {1, 1}, 4}));
  const auto pool = std::get<PoolAttributes>(
      ParseOp("avg_pool2d(x, kernel_size=3, ceil_mode=True, "
              "count_include_pad=False, divisor_override=7)")
          .attributes);
  EXPECT_EQ(pool.stride, (Pair{3, 3}));
  EXPECT_TRUE(pool.ceil_mode);
  EXPECT_FALSE(pool.count_include_pad);
  EXPECT_EQ(pool.divisor_override, 7);
  const auto reduce = std::get<ReduceAttributes>(
      ParseOp("max(x, dim=[1,-1], keepdim=true)").attributes);
  EXPECT_EQ(reduce, (ReduceAttributes{{1, -1}, true}));
  EXPECT_EQ(
      std::get<GeluAttributes>(ParseOp("gelu(x, approximate=tanh)").attributes)
          .approximate,
      GeluApproximate::kTanh);
  EXPECT_EQ(std::get<ClampAttributes>(ParseOp("hardtanh(x)").attributes),
            (ClampAttributes{-1.0f, 1.0f}));
  EXPECT_EQ(std::get<ClampAttributes>(ParseOp("clamp(x, max=6)").attributes),
            (ClampAttributes{std::nullopt, 6.0f}));
  EXPECT_EQ(
      std::get<CastAttributes>(ParseOp("cast(x, dtype=bf16)").attributes).dtype,
      DataType::kBF16);
}

TEST(ParsePlanTextTest, LinesMayBreakInsideBrackets) {
  const Plan plan = MustParsePlan(
      "input x: f32[2,\n  3]\ny = clamp(\n  x,  # the input\n  min=0)\n"
      "output y");
  EXPECT_EQ(plan.inputs[0].desc.dims, (Dims{2, 3}));
}

TEST(ParsePlanTextTest, ErrorsSayWhereAndWhat) {
  const struct {
    std::string text;
    std::string message;
  } rows[] = {
      {"input x: f32[2]\ny = tanhh(x)",
       "line 2, column 5: is not an op; did you mean 'tanh'? (got 'tanhh', "
       "allowed: an op of docs/plan-language.md)"},
      {"input x: f32[2]\ny = swish(x)",
       "line 2, column 5: is not an op; write y = silu(x) (got 'swish', "
       "allowed: an op of docs/plan-language.md)"},
      {"input x f32[2]",
       "line 1, column 9: unexpected token (got 'f32', allowed: ':')"},
      {"input x: f64[2]",
       "line 1, column 10: is not a data type (got 'f64', allowed: f32, f16 or "
       "bf16)"},
      {"input x: f32[2,y]",
       "line 1, column 16: unexpected token (got 'y', allowed: a 64-bit "
       "integer)"},
      {"input x: f32[2",
       "line 1, column 15: unexpected token (got the end of the line, allowed: "
       "']')"},
      {"grade fp64",
       "line 1, column 7: is not a grade (got 'fp64', allowed: fp32 or tf32)"},
      {"grade fp32\ngrade fp32",
       "line 2, column 1: a plan has one grade (got a second, allowed: one)"},
      {"inpt x: f32[2]",
       "line 1, column 1: no statement starts so; did you mean 'input'? (got "
       "'inpt', allowed: grade, input, param, output or NAME = OP(...))"},
      {"input x: f32[2]\noutput xx",
       "line 2, column 8: is not a value defined above; did you mean 'x'? (got "
       "'xx', allowed: an input or the result of an op)"},
      {"input x: f32[2]\ninput x: f32[2]",
       "line 2, column 7: is defined a second time (got 'x', allowed: each "
       "name once)"},
      {"input inf: f32[2]",
       "line 1, column 7: is a reserved word (got 'inf', allowed: another "
       "name)"},
      {"input x: f32[2]\ny = relu(x)\ninput z: f32[2]",
       "line 3, column 7: an input stands behind an op (got 'z', allowed: "
       "inputs and params before the first op)"},
      {"input x: f32[2]\ny = relu(x, x)",
       "line 2, column 13: relu takes at most 1 operands; attributes are given "
       "by name (got 'x', allowed: input)"},
      {"input x: f32[2]\ny = elu(x, alhpa=2)",
       "line 2, column 12: elu has no such argument (got 'alhpa', allowed: "
       "input, alpha)"},
      {"input x: f32[2]\ny = avg_pool2d(x, kernel_size=2, dilation=2)",
       "line 2, column 34: avg_pool2d has no such argument (got 'dilation', "
       "allowed: input, kernel_size, stride, padding, ceil_mode, "
       "count_include_pad, divisor_override)"},
      {"input x: f32[2]\ny = max_pool2d(x, kernel_size=2, "
       "divisor_override=3)",
       "line 2, column 34: max_pool2d has no such argument (got "
       "'divisor_override', allowed: input, kernel_size, stride, padding, "
       "dilation, ceil_mode)"},
      {"input x: f32[2]\ny = conv2d(x, x, output_padding=1)",
       "line 2, column 18: conv2d has no such argument (got "
       "'output_padding', allowed: input, weight, bias, stride, padding, "
       "dilation, groups)"},
      {"input x: f32[2]\ny = elu(x, alpha=1, alpha=2)",
       "line 2, column 21: alpha is given twice (got 'alpha', allowed: each "
       "argument once)"},
      {"input x: f32[2]\ny = elu(x, input=x)",
       "line 2, column 12: input is given twice (got 'input', allowed: each "
       "argument once)"},
      {"input x: f32[2]\ny = softmax(x)",
       "line 2, column 5: softmax needs its dim (got nothing, allowed: "
       "dim=...)"},
      {"input x: f32[2]\ny = relu(2)",
       "line 2, column 10: relu takes a value here, not a number (got '2', "
       "allowed: "
       "input)"},
      {"input x: f32[2]\ny = add(x, 1e39)",
       "line 2, column 12: does not fit f32 (got '1e39', allowed: a number "
       "within the range of f32)"},
      {"input x: f32[2]\ny = add(x, 1.2.3)",
       "line 2, column 12: unexpected token (got '1.2.3', allowed: a number)"},
      {"input x: f32[2]\ny = max_pool2d(x, kernel_size=[1,2,3])",
       "line 2, column 31: has the wrong number of entries (got 3, allowed: "
       "one "
       "number, or two for height and width)"},
      {"input x: f32[2]\ny = sum(x, keepdim=1)",
       "line 2, column 20: unexpected token (got '1', allowed: true or false)"},
      {"input x: f32[2]\ny = gelu(x, approximate=erf)",
       "line 2, column 25: is not an approximation of gelu (got 'erf', "
       "allowed: "
       "none or tanh)"},
      {"input x: f32[2] $",
       "line 1, column 17: no token starts here (got byte 0x24, allowed: a "
       "name, a number or one of = ( ) [ ] , : #)"},
      {"input x: f32[2] y",
       "line 1, column 17: unexpected token (got 'y', allowed: the end of the "
       "line)"},
  };
  for (const auto& row : rows) {
    const absl::Status status = ParsePlanText(row.text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << row.text;
    EXPECT_EQ(std::string(status.message()), row.message) << row.text;
    EXPECT_EQ(DetailOf(status).field.substr(0, 5), "line ") << row.text;
  }
}

TEST(ParsePlanTextTest, TextIsBounded) {
  const std::string text(kMaxPlanTextBytes + 1, '#');
  EXPECT_TRUE(absl::IsInvalidArgument(ParsePlanText(text).status()));
  EXPECT_TRUE(ParsePlanText(text.substr(1)).ok());
}

TEST(ToTextTest, WritesWhatDiffersFromTheDefaults) {
  const std::string text =
      "grade fp32\n"
      "input x: f32[2,8,16,16]\n"
      "param w: f32[64,8,3,3]\n"
      "param beta: f32[64]\n"
      "y = conv2d(x, w, stride=[2,1], padding=1)\n"
      "z = group_norm(y, bias=beta, num_groups=16)\n"
      "p = max_pool2d(z, kernel_size=2)\n"
      "q = avg_pool2d(p, kernel_size=[3,2], stride=1)\n"
      "t = clamp(q, min=0)\n"
      "s = sub(0.1, t)\n"
      "r = sum(s, dim=[1,-1])\n"
      "output r: f16\n";
  EXPECT_EQ(ToText(MustParsePlan(text)), text);
}

TEST(ToTextTest, ReplacesMissingRepeatedAndUnspellableNames) {
  Plan plan = MustParsePlan(
      "input v0: f32[2]\ny = relu(v0)\nz = tanh(y)\nt = abs(z)\noutput t: f32");
  plan.ops[0].name = "";
  plan.ops[1].name = "v0";
  plan.ops[2].name = "9 lives";
  EXPECT_EQ(ToText(plan),
            "grade fp32\ninput v0: f32[2]\nv1 = relu(v0)\nv2 = tanh(v1)\n"
            "v3 = abs(v2)\noutput v3: f32\n");
}

TEST(ToTextTest, PrintsAnyPlanWithoutFailing) {
  Plan plan;
  plan.ops.push_back({static_cast<OpKind>(999), "", {ValueId{-5}}, {}});
  plan.ops.push_back({OpKind::kConv2d, "", {}, CastAttributes()});
  plan.outputs.push_back({ValueId{77}, static_cast<DataType>(0)});
  EXPECT_NE(ToText(plan).find("op_999(value[-5])"), std::string::npos);
}

Plan WithoutNames(Plan plan) {
  for (PlanInput& input : plan.inputs) input.name.clear();
  for (Op& op : plan.ops) op.name.clear();
  return plan;
}

TEST(PlanTextTest, RandomPlansRoundTrip) {
  PlanGenerator generator(5, {12, 2048, true});
  for (int i = 0; i < 3000; ++i) {
    const Plan plan = generator.Next();
    const std::string text = ToText(plan);
    const absl::StatusOr<Plan> read = ParsePlanText(text);
    ASSERT_TRUE(read.ok()) << read.status() << "\n" << text;
    ASSERT_EQ(WithoutNames(*read), WithoutNames(plan)) << text;
    ASSERT_EQ(ToText(*read), text);
  }
}

}  // namespace
}  // namespace kiln
