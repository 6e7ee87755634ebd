// Pointwise kernels that are left out because their readers compute what they
// would. Prevents a launch for a few numbers, and long operations for each of
// many elements.
#include "jit/compile/compute_again.h"

#include <gtest/gtest.h>

#include <string>

#include "fmt/format.h"
#include "jit/compile/kernel_spec.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

// Elements, each multiplied by what `op` makes of a number of its channel.
std::string Gate(const std::string& op, const std::string& output = "y") {
  return fmt::format(
      "input x: f16[32,64,14,14]\ninput s: f16[32,64,1,1]\n"
      "g = {}(s)\ny = mul(x, g)\noutput {}\n",
      op, output);
}

size_t KernelsOf(const std::string& text) {
  return Fastest(text).kernels.size();
}

TEST(ComputeAgainTest, NumbersOfChannelsNeedNoKernel) {
  for (const char* op : {"sigmoid", "hardsigmoid", "exp", "relu"}) {
    EXPECT_EQ(KernelsOf(Gate(op)), 1) << op;
  }
}

TEST(ComputeAgainTest, LongOperationsDo) {
  EXPECT_EQ(KernelsOf(Gate("gelu")), 2);
  EXPECT_EQ(KernelsOf(Gate("tanh")), 2);
}

// Of which a norm reads the one of its channel, wherever an element lies.
TEST(ComputeAgainTest, VectorsOfChannelsDo) {
  const std::string batch_norm =
      "input x: f32[4,8,8,8]\ninput v: f32[8]\ninput mu: f32[8]\n"
      "e = exp(v)\ny = batch_norm(x, mu, e)\noutput y\n";
  const std::string group_norm =
      "input x: f32[4,8,8,8]\ninput v: f32[8]\ne = abs(v)\n"
      "y = group_norm(x, e, num_groups=2)\noutput y\n";
  for (const std::string& text : {batch_norm, group_norm}) {
    const CanonicalPlan plan = *Canonicalize(*ParsePlanText(text));
    for (const Room room : {Room::kTight, Room::kPlain}) {
      const Schedule schedule = MakeSchedules(plan, kH100, room).front();
      for (const Kernel& kernel : schedule.kernels) {
        EXPECT_FALSE(MakeKernelSpec(schedule, kernel).source_file.empty());
      }
    }
  }
}

TEST(ComputeAgainTest, OutputsDo) {
  EXPECT_EQ(KernelsOf(Gate("sigmoid", "y\noutput g")), 2);
}

// Each number would be computed for four elements.
TEST(ComputeAgainTest, NumbersOfFewElementsDo) {
  EXPECT_EQ(KernelsOf("input x: f16[32,64,2,2]\ninput s: f16[32,64,1,1]\n"
                      "g = sigmoid(s)\ny = mul(x, g)\noutput y\n"),
            2);
}

// Of as many elements only what is short is computed for both readers.
TEST(ComputeAgainTest, ElementsOfSeveralReaders) {
  const auto text = [](const char* op) {
    return fmt::format(
        "input x: f32[32,256,56,56]\nd = {}(x)\n"
        "m = mean(d, dim=[2,3], keepdim=true)\ny = mul(d, m)\noutput y\n",
        op);
  };
  const Schedule schedule = Fastest(text("abs"));
  for (const Kernel& kernel : schedule.kernels) {
    for (const Store& store : kernel.stores) {
      EXPECT_NE(schedule.lowered.values[store.value].name, "v0");
    }
  }
}

// Of two tensors both are read twice, which is less than storing their sum and
// reading that twice.
TEST(ComputeAgainTest, ElementsOfReductionsAlongDifferentAxes) {
  EXPECT_EQ(KernelsOf("input x: f32[1,320,192,192]\n"
                      "input z: f32[1,320,192,192]\na = add(x, z)\n"
                      "h = hardswish(a)\nn = group_norm(h, num_groups=16)\n"
                      "y = sum(n, dim=1)\noutput y\n"),
            2);
}

}  // namespace
}  // namespace kiln
