#include "jit/plan/canonical.h"

#include <gtest/gtest.h>

#include <bit>

#include "jit/plan/errors.h"
#include "jit/plan/plan_text.h"
#include "tests/jit/plan/parse_plan.h"

namespace kiln {
namespace {

CanonicalPlan CanonicalOf(std::string_view text) {
  const absl::StatusOr<CanonicalPlan> plan = Canonicalize(MustParsePlan(text));
  EXPECT_TRUE(plan.ok()) << plan.status() << "\n" << text;
  return plan.ok() ? *plan : CanonicalPlan();
}

std::string TextOf(std::string_view text) {
  return CanonicalText(CanonicalOf(text));
}

size_t OpCount(std::string_view text) {
  return CanonicalOf(text).plan.ops.size();
}

// Any change of this text changes every key: it goes with a new key version.
TEST(CanonicalTest, TextIsGolden) {
  EXPECT_EQ(TextOf("grade tf32\n"
                   "param unused: f32[3]\n"
                   "param w: f16[6,2,3,3]\n"
                   "input x: f32[2,4,8,8]\n"
                   "y = conv2d(x, w, groups=2, padding=[1,0])\n"
                   "dead = exp(y)\n"
                   "h = hardtanh(y)\n"
                   "a = add(0.1, h)\n"
                   "s = sum(a, dim=[-1,1])\n"
                   "output s: f16\n"
                   "output x\n"),
            "grade=tf32\n"
            "input0.dtype=f32\n"
            "input0.dims=2,4,8,8\n"
            "input0.role=activation\n"
            "input1.dtype=f16\n"
            "input1.dims=6,2,3,3\n"
            "input1.role=parameter\n"
            "op0.kind=conv2d\n"
            "op0.operand0=value 0\n"
            "op0.operand1=value 1\n"
            "op0.operand2=none\n"
            "op0.stride=1,1\n"
            "op0.padding=1,0\n"
            "op0.output_padding=0,0\n"
            "op0.dilation=1,1\n"
            "op0.groups=2\n"
            "op1.kind=hardtanh\n"
            "op1.operand0=value 2\n"
            "op1.min=0xbf800000\n"
            "op1.max=0x3f800000\n"
            "op2.kind=add\n"
            "op2.operand0=0x3dcccccd\n"
            "op2.operand1=value 3\n"
            "op3.kind=sum\n"
            "op3.operand0=value 4\n"
            "op3.dim=1,3\n"
            "op3.keepdim=0\n"
            "output0.value=5\n"
            "output0.dtype=f16\n"
            "output1.value=0\n"
            "output1.dtype=f32\n");
}

TEST(CanonicalTest, SlotsAreInputsInCanonicalOrderThenOutputs) {
  const CanonicalPlan plan = CanonicalOf(
      "input unused: f32[2]\ninput b: f32[2]\ninput a: f32[2]\n"
      "y = sub(a, b)\noutput b\noutput y\n");
  EXPECT_EQ(plan.slot_of_input, (std::vector<int>{-1, 0, 1}));
  EXPECT_EQ(plan.slot_of_output, (std::vector<int>{2, 3}));
  EXPECT_EQ(plan.plan.inputs[0].name, "i0");
  EXPECT_EQ(plan.plan.ops[0].name, "v0");
}

TEST(CanonicalTest, DefaultsAreExplicit) {
  const std::string x = "input x: f32[2,4,8,8]\n";
  const std::pair<std::string, std::string> same[] = {
      {"y = hardtanh(x)", "y = hardtanh(x, min_val=-1, max_val=1)"},
      {"y = max_pool2d(x, kernel_size=2)",
       "y = max_pool2d(x, kernel_size=2, stride=2, dilation=1)"},
      {"y = sum(x)", "y = sum(x, dim=[0,1,2,3])"},
      {"y = amax(x, dim=[-1,0])", "y = max(x, dim=[0,3])"},
      {"y = softmax(x, dim=-3)", "y = softmax(x, dim=1)"},
  };
  for (const auto& [a, b] : same) {
    EXPECT_EQ(TextOf(x + a + "\noutput y"), TextOf(x + b + "\noutput y")) << a;
  }
}

TEST(CanonicalTest, HardtanhBoundsAreFilledIn) {
  Plan plan =
      MustParsePlan("input x: f32[2]\ny = hardtanh(x)\noutput y: f32\n");
  const std::string text = CanonicalText(*Canonicalize(plan));
  plan.ops[0].attributes = ClampAttributes();
  EXPECT_EQ(CanonicalText(*Canonicalize(plan)), text);
}

TEST(CanonicalTest, ScalarReductionsNameNoDimension) {
  const CanonicalPlan plan =
      CanonicalOf("input x: f32[]\ny = sum(x, dim=-1)\noutput y\n");
  EXPECT_TRUE(
      std::get<ReduceAttributes>(plan.plan.ops[0].attributes).dim.empty());
}

TEST(CanonicalTest, EqualOpsMerge) {
  EXPECT_EQ(OpCount("input x: f32[2]\na = exp(x)\nb = exp(x)\n"
                    "c = neg(a)\nd = neg(b)\ns = add(c, d)\noutput s\n"),
            3u);
  EXPECT_EQ(OpCount("input x: f32[2]\na = add(x, 0.0)\nb = add(x, -0.0)\n"
                    "s = sub(a, b)\noutput s\n"),
            3u);
}

TEST(CanonicalTest, EqualNaNsMergeAndOthersDoNot) {
  Plan plan = MustParsePlan(
      "input x: f32[2]\na = add(x, nan)\nb = add(x, nan)\ns = sub(a, b)\n"
      "output s\n");
  EXPECT_EQ(Canonicalize(plan)->plan.ops.size(), 2u);
  plan.ops[1].operands[1] = std::bit_cast<float>(0x7fc00001u);
  EXPECT_EQ(Canonicalize(plan)->plan.ops.size(), 3u);
}

TEST(CanonicalTest, EqualInputsDoNotMerge) {
  const CanonicalPlan plan = CanonicalOf(
      "input a: f32[2]\ninput b: f32[2]\ny = sub(a, b)\noutput y\n");
  EXPECT_EQ(plan.plan.inputs.size(), 2u);
}

TEST(CanonicalTest, UnpaddedPoolingOfSingleElementsGoes) {
  const std::string x = "input x: f32[1,2,4,4]\n";
  for (const char* call :
       {"max_pool2d(x, kernel_size=1)",
        "max_pool2d(x, kernel_size=1, dilation=3, ceil_mode=true)",
        "avg_pool2d(x, kernel_size=1)",
        "avg_pool2d(x, kernel_size=1, divisor_override=1)"}) {
    EXPECT_EQ(OpCount(x + "y = " + call + "\noutput y"), 0u) << call;
  }
  for (const char* call :
       {"max_pool2d(x, kernel_size=1, stride=2)",
        "max_pool2d(x, kernel_size=[1,2], stride=1)",
        "avg_pool2d(x, kernel_size=1, divisor_override=2)"}) {
    EXPECT_EQ(OpCount(x + "y = " + call + "\noutput y"), 1u) << call;
  }
}

TEST(CanonicalTest, CastGoesOnlyWhereItRoundsNothing) {
  // An f16 input already holds f16 values.
  EXPECT_EQ(OpCount("input x: f16[2]\ny = cast(x, dtype=f16)\noutput y"), 0u);
  EXPECT_EQ(OpCount("input x: f32[2]\ny = cast(x, dtype=f32)\noutput y"), 0u);
  EXPECT_EQ(OpCount("input x: f32[2]\na = cast(x, dtype=f16)\n"
                    "b = cast(a, dtype=f16)\noutput b"),
            1u);
  // The nominal type of the sum is f16, its value is not: the cast rounds.
  EXPECT_EQ(OpCount("input x: f16[2]\na = add(x, x)\n"
                    "b = cast(a, dtype=f16)\noutput b"),
            2u);
  EXPECT_EQ(OpCount("input x: f16[2]\na = cast(x, dtype=f32)\n"
                    "b = cast(a, dtype=f16)\noutput b"),
            2u);
}

TEST(CanonicalTest, ArithmeticIdentitiesStay) {
  for (const char* call :
       {"add(x, 0.0)", "mul(x, 1)", "div(x, 1)", "clamp(x, min=-inf)"}) {
    EXPECT_EQ(
        OpCount(std::string("input x: f32[2]\ny = ") + call + "\noutput y"), 1u)
        << call;
  }
}

// Prevents that a function costs twice its time for how it is written.
TEST(CanonicalTest, ProductsWrittenByHandAreNamed) {
  const std::string mish = TextOf("input x: f32[4]\ny = mish(x)\noutput y\n");
  EXPECT_EQ(TextOf("input x: f32[4]\ns = softplus(x)\nt = tanh(s)\n"
                   "y = mul(t, x)\noutput y\n"),
            mish);
  EXPECT_EQ(TextOf("input x: f32[4]\ns = softplus(x)\nt = tanh(s)\n"
                   "y = mul(x, t)\noutput y\n"),
            mish);
  EXPECT_EQ(TextOf("input x: f16[4]\ns = sigmoid(x)\ny = mul(x, s)\n"
                   "output y\n"),
            TextOf("input x: f16[4]\ny = silu(x)\noutput y\n"));
  EXPECT_EQ(TextOf("input x: f32[4]\ns = hardsigmoid(x)\ny = mul(x, s)\n"
                   "output y\n"),
            TextOf("input x: f32[4]\ny = hardswish(x)\noutput y\n"));
}

TEST(CanonicalTest, OtherProductsStay) {
  // Another softplus, another argument, a factor that is put to other use.
  EXPECT_EQ(OpCount("input x: f32[4]\ns = softplus(x, beta=2)\nt = tanh(s)\n"
                    "y = mul(t, x)\noutput y\n"),
            3u);
  EXPECT_EQ(OpCount("input x: f32[4]\ninput z: f32[4]\ns = sigmoid(z)\n"
                    "y = mul(x, s)\noutput y\n"),
            2u);
  EXPECT_EQ(OpCount("input x: f32[4]\ns = sigmoid(x)\ny = mul(x, s)\n"
                    "z = add(y, s)\noutput z\n"),
            3u);
}

TEST(CanonicalTest, OperandOrderIsKept) {
  const std::string x = "input x: f32[2]\ninput z: f32[1]\n";
  EXPECT_NE(TextOf(x + "y = add(x, z)\noutput y"),
            TextOf(x + "y = add(z, x)\noutput y"));
  EXPECT_NE(TextOf(x + "y = sub(x, 1)\noutput y"),
            TextOf(x + "y = sub(1, x)\noutput y"));
}

TEST(CanonicalTest, OrderAndNumberOfOutputsAreKept) {
  const std::string x = "input x: f32[2]\na = exp(x)\nb = abs(x)\n";
  EXPECT_NE(TextOf(x + "output a\noutput b"), TextOf(x + "output b\noutput a"));
  EXPECT_NE(TextOf(x + "output a"), TextOf(x + "output a\noutput a"));
}

TEST(CanonicalTest, WrongPlanGetsTheValidatorsError) {
  const absl::Status status =
      Canonicalize(MustParsePlan("input x: f32[0]\noutput x")).status();
  EXPECT_EQ(DetailOf(status).field, "inputs[0].desc.dims[0]");
}

}  // namespace
}  // namespace kiln
