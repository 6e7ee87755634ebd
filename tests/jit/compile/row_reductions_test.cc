// Which reductions of a plan stay on chip until what is computed of them is
// written. Prevents that rows are read twice where once is enough, and that
// something that a caller wants is never written.
#include <gtest/gtest.h>

#include <algorithm>

#include "fmt/format.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/specialize.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

std::string Centered(const std::string& dims, const std::string& dim,
                     const std::string& type = "f32") {
  return fmt::format(
      "input x: {}[{}]\nm = mean(x, dim={}, keepdim=true)\n"
      "y = sub(x, m)\noutput y\n",
      type, dims, dim);
}

std::string RootMeanSquare(const std::string& type) {
  return fmt::format(
      "input x: {0}[4096,20000]\nq = mul(x, x)\n"
      "m = mean(q, dim=1, keepdim=true)\ne = add(m, 1e-5)\ns = sqrt(e)\n"
      "y = div(x, s)\noutput y\n",
      type);
}

RowKeeper KeeperOf(const std::string& text) {
  const Schedule schedule = Fastest(text);
  EXPECT_EQ(schedule.kernels.size(), 1u) << text;
  EXPECT_TRUE(schedule.kernels[0].rows.has_value()) << text;
  return schedule.kernels[0].rows.value_or(RowGeometry{}).keeper;
}

bool IsApart(const std::string& text) {
  const Schedule schedule = Fastest(text);
  return std::none_of(
      schedule.kernels.begin(), schedule.kernels.end(),
      [](const Kernel& kernel) { return kernel.rows.has_value(); });
}

TEST(RowReductionsTest, RowsOfEveryLengthAreReadOnce) {
  EXPECT_EQ(KeeperOf(Centered("65536,128", "1")), RowKeeper::kWarp);
  EXPECT_EQ(KeeperOf(Centered("4096,4096", "1")), RowKeeper::kWarp);
  EXPECT_EQ(KeeperOf(Centered("4096,20000", "1")), RowKeeper::kBlock);
  EXPECT_EQ(KeeperOf(Centered("32,64,128,128", "[2,3]")), RowKeeper::kBlock);
  EXPECT_EQ(KeeperOf(Centered("16,21,256,256", "1")), RowKeeper::kWarpChain);
  EXPECT_EQ(KeeperOf(Centered("16,768,32,32", "1")), RowKeeper::kColumns);
}

TEST(RowReductionsTest, EveryReductionIsOne) {
  for (const char* op : {"sum", "mean", "amax", "amin", "logsumexp"}) {
    EXPECT_EQ(KeeperOf(fmt::format("input x: bf16[4096,32000]\n"
                                   "m = {}(x, dim=1, keepdim=true)\n"
                                   "y = sub(x, m)\noutput y\n",
                                   op)),
              RowKeeper::kBlock)
        << op;
  }
}

// Elements that are used as they are stay so, and are squared again; without
// that, each would come from memory twice.
TEST(RowReductionsTest, ElementsAreKeptAsTheyAreUsed) {
  for (const char* type : {"f32", "bf16"}) {
    const Schedule schedule = Fastest(RootMeanSquare(type));
    ASSERT_EQ(schedule.kernels.size(), 1u);
    EXPECT_TRUE(schedule.kernels[0].rows->reads_again) << type;
    const KernelSpec spec = MakeKernelSpec(schedule, schedule.kernels[0]);
    const std::string unit = WriteUnit(spec);
    EXPECT_EQ(unit.find("kiln::Fetch(t.i0"), std::string::npos) << unit;
  }
}

// In each element, a root and a division would be most of what is computed.
TEST(RowReductionsTest, WhatARowHasInCommonIsComputedOnce) {
  for (const char* dims : {"65536,128", "8192,4096"}) {
    const Schedule schedule = Fastest(
        fmt::format("input x: f32[{}]\nq = mul(x, x)\n"
                    "m = mean(q, dim=1, keepdim=true)\ns = sqrt(m)\n"
                    "h = div(1, s)\nd = div(x, s)\ny = mul(d, h)\noutput y\n",
                    dims));
    const std::string unit =
        WriteUnit(MakeKernelSpec(schedule, schedule.kernels.at(0)));
    const size_t finish = unit.find("Statistics Finish(");
    const size_t root = unit.find("kiln::Sqrt(");
    EXPECT_GT(root, finish) << unit;
    EXPECT_LT(root, unit.find("}", finish)) << unit;
    EXPECT_EQ(unit.find("kiln::Sqrt(", root + 1), std::string::npos) << unit;
    EXPECT_NE(unit.find("kiln::DivBy(i0, row."), std::string::npos) << unit;
  }
}

// Statistics are finished without the tensors: what needs one, here what each
// row is also multiplied with, must not become a field of them.
TEST(RowReductionsTest, WhatARowReadsIsReadBesideItsElements) {
  const Schedule schedule = Fastest(
      "input x: f32[8192,128]\ninput g: f32[8192,1]\n"
      "m = sum(x, dim=1, keepdim=true)\ns = mul(m, g)\nt = add(s, m)\n"
      "y = div(x, t)\noutput y\n");
  ASSERT_EQ(schedule.kernels.size(), 1u);
  const std::string unit =
      WriteUnit(MakeKernelSpec(schedule, schedule.kernels[0]));
  EXPECT_EQ(unit.find("DivBy"), std::string::npos) << unit;
  EXPECT_NE(unit.find("kiln::Div("), std::string::npos) << unit;
}

// As many as rows have, so they could be taken for those of another axis.
TEST(RowReductionsTest, ResultsMustStandBesideTheirRows) {
  EXPECT_TRUE(
      IsApart("input x: f32[512,512]\nm = mean(x, dim=1)\n"
              "y = sub(x, m)\noutput y\n"));
  EXPECT_FALSE(
      IsApart("input x: f32[64,65536]\nm = mean(x, dim=0)\n"
              "y = sub(x, m)\noutput y\n"));
}

TEST(RowReductionsTest, WhatIsWantedItselfIsAKernelOfItsOwn) {
  EXPECT_TRUE(IsApart(Centered("4096,4096", "1") + "output m\n"));
  EXPECT_TRUE(
      IsApart("input x: f32[4096,4096]\nm = mean(x, dim=1, keepdim=true)\n"
              "s = sqrt(m)\ny = sub(x, s)\noutput y\noutput s\n"));
}

// Nothing would be read less often.
TEST(RowReductionsTest, RowsThatAreNotUsedAgainAreNotKept) {
  EXPECT_TRUE(
      IsApart("input x: f32[4096,4096]\ninput z: f32[4096,4096]\n"
              "m = mean(x, dim=1, keepdim=true)\ny = sub(z, m)\noutput y\n"));
}

TEST(RowReductionsTest, RowsThatFitNowhereAreReadTwice) {
  EXPECT_TRUE(IsApart(Centered("32,64,128,128", "[0,1,2,3]")));
  EXPECT_TRUE(IsApart(Centered("32,64,128,128", "[0,2,3]")));
}

TEST(RowReductionsTest, AVarianceIsOneKernel) {
  const Schedule schedule = Fastest(
      "input x: f32[32,64,128,128]\nm = mean(x, dim=[2,3], keepdim=true)\n"
      "d = sub(x, m)\nq = mul(d, d)\nv = mean(q, dim=[2,3])\noutput v\n");
  ASSERT_EQ(schedule.kernels.size(), 1u);
  EXPECT_EQ(schedule.kernels[0].rows->segment, 128 * 128);
}

// Statistics do not reach what is computed of a reduction of their rows' parts.
TEST(RowReductionsTest, AStatisticThatIsReadBehindTheTailIsStored) {
  for (const char* rest :
       {"y = div(x, s)\nm = amax(y, dim=2, keepdim=true)\nz = add(m, s)\n",
        "e = exp(x)\nm = amax(e, dim=2, keepdim=true)\nz = add(s, m)\n",
        "q = exp(s)\ny = sub(x, s)\nm = sum(y, dim=2, keepdim=true)\n"
        "z = mul(m, q)\n"}) {
    const Schedule schedule =
        Fastest(std::string("input x: f32[64,64,64]\n"
                            "s = sum(x, dim=[1,2], keepdim=true)\n") +
                rest + "output z\n");
    EXPECT_GE(schedule.kernels.size(), 2u) << rest;
    for (const Kernel& kernel : schedule.kernels) {
      const KernelSpec spec = MakeKernelSpec(schedule, kernel);
      EXPECT_FALSE(spec.source_file.empty());
    }
  }
}

// `x` is read by the prologue, and the statistic is not taken of it.
TEST(RowReductionsTest, OnlyWhatTheStatisticIsTakenOfIsKept) {
  const Schedule schedule = Fastest(
      "input x: f32[64,4096]\ninput a: f32[64,1]\ninput b: f32[1,4096]\n"
      "t = add(a, b)\nu = mul(t, x)\ns = sum(t, dim=1, keepdim=true)\n"
      "y = div(u, s)\noutput y\n");
  for (const Kernel& kernel : schedule.kernels) {
    EXPECT_FALSE(WriteUnit(MakeKernelSpec(schedule, kernel)).empty());
    if (kernel.rows) {
      EXPECT_FALSE(kernel.rows->copies);
    }
  }
}

// A kernel whose rows end in a reduction stores nothing of them.
TEST(RowReductionsTest, ASourceThatIsWantedIsStored) {
  for (const char* output : {"r", "q"}) {
    const Schedule schedule = Fastest(
        fmt::format("input x: f32[64,64,28,28]\nr = relu(x)\nq = neg(r)\n"
                    "g = group_norm(r, num_groups=8)\ny = mean(g, dim=[2,3])\n"
                    "output y\noutput {}\n",
                    output));
    size_t stores = 0;
    for (const Kernel& kernel : schedule.kernels) {
      stores += kernel.stores.size();
      if (kernel.group.tail >= 0) {
        EXPECT_TRUE(kernel.group.prologue.empty());
      }
    }
    EXPECT_GE(stores, 2u);
    EXPECT_EQ(schedule.kernels.size(), 2u);
  }
}

TEST(RowReductionsTest, PoolingOfWholeImagesIsAReduction) {
  const auto file = [](const std::string& text) {
    const Schedule schedule = Fastest(text);
    return MakeKernelSpec(schedule, schedule.kernels.back()).source_file;
  };
  const std::string image = "input x: f32[256,2048,7,7]\n";
  EXPECT_EQ(file(image + "y = avg_pool2d(x, kernel_size=7)\noutput y\n"),
            "reduce.cu");
  EXPECT_EQ(file(image + "y = max_pool2d(x, kernel_size=7)\noutput y\n"),
            "reduce.cu");
  for (const char* other : {"avg_pool2d(x, kernel_size=7, divisor_override=9)",
                            "avg_pool2d(x, kernel_size=7, padding=1)",
                            "max_pool2d(x, kernel_size=[7,6])"}) {
    EXPECT_EQ(file(image + "y = " + other + "\noutput y\n"), "pool2d.cu");
  }
}

}  // namespace
}  // namespace kiln
