// Products of warpgroups follow each other without waiting for results.
#include <gtest/gtest.h>

#include <string>

#include "jit/compile/compile_units.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/specialize.h"
#include "tests/jit/compile/compile_testing.h"
#include "tests/jit/compile/fastest_schedule.h"

namespace kiln {
namespace {

// What the compiler says of a generated unit.
std::string LogOf(const std::string& source) {
  const auto compiled = CompileUnits({{{}, source}}, "sm_90a", &TestNvrtc());
  return compiled.ok() ? compiled->front().log : compiled.status().ToString();
}

using WarpgroupProductsTest = ::testing::TestWithParam<const char*>;

// Prevents code before or between products whose branches the compiler takes
// for different in the lanes of a warp: it then waits for each product, which
// halves their speed, and says so only in its log.
TEST_P(WarpgroupProductsTest, AreNotSerialized) {
  const Schedule schedule = Fastest(GetParam());
  int products = 0;
  for (const Kernel& kernel : schedule.kernels) {
    const KernelSpec spec = MakeKernelSpec(schedule, kernel);
    if (spec.source_file != "conv_wgmma.cu") continue;
    ++products;
    const std::string source = WriteUnit(spec);
    const std::string log = LogOf(source);
    EXPECT_NE(log.find("Compiling entry function"), std::string::npos) << log;
    EXPECT_EQ(log.find("serialized"), std::string::npos) << source;
  }
  EXPECT_GT(products, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, WarpgroupProductsTest,
    ::testing::Values(
        // Statistics; then a reduction of pixel rows, where registers stay.
        "input x: f32[4,8,128,128]\nparam w: f32[64,8,3,3]\n"
        "y = conv2d(x, w)\nn = group_norm(y, num_groups=16)\nt = tanh(n)\n"
        "h = hardswish(t)\nr = add(h, y)\n"
        "z = logsumexp(r, dim=1, keepdim=true)\noutput z\n",
        // Several chunks, results through planes.
        "input x: f32[8,64,64,64]\nparam w: f32[64,64,3,3]\n"
        "y = conv2d(x, w, padding=1)\ng = gelu(y)\n"
        "z = group_norm(g, num_groups=8)\noutput z\n",
        // Rows of eight pixels.
        "input x: f16[16,512,32,32]\nparam w: f16[512,512,3,3]\n"
        "y = conv2d(x, w, padding=1)\nz = relu(y)\noutput z\n",
        // Numbers of blocks from memory: the norm is finished here.
        "input x: f32[32,64,256,256]\nparam w: f32[64,64,3,3]\n"
        "y = conv_transpose2d(x, w)\ng = gelu(y)\n"
        "z = group_norm(g, num_groups=8)\noutput z\n",
        // The same in chunks, where warpgroups give each other no registers.
        "input x: f32[4,96,64,64]\nparam w: f32[128,96,7,7]\n"
        "y = conv2d(x, w, padding=3)\nr = relu(y)\n"
        "z = mean(r, dim=[2,3])\noutput z\n",
        // Four warpgroups of pixel rows, all weights kept.
        "input x: f32[32,16,112,112]\nparam w: f32[32,16,5,5]\n"
        "param b: f32[32]\ny = conv2d(x, w, b, padding=2)\n"
        "z = hardswish(y)\noutput z\n",
        // Three fragments of rows to a warp.
        "input x: f16[32,32,56,56]\nparam w: f16[64,32,3,3]\n"
        "y = conv2d(x, w)\nz = logsumexp(y, dim=1)\noutput z\n",
        // Images that are held: as stored, then with one part.
        "input x: f16[32,64,64,64]\nparam w: f16[64,64,3,3]\n"
        "y = conv2d(x, w, padding=1)\nn = group_norm(y, num_groups=8)\n"
        "z = silu(n)\noutput z\n",
        "grade tf32\ninput x: f32[128,64,256,256]\n"
        "param w: f32[64,64,3,3]\ny = conv_transpose2d(x, w)\n"
        "g = gelu(y)\nz = group_norm(g, num_groups=8)\noutput z\n",
        // Stages with scales of their own, of one part.
        "grade tf32\ninput x: f32[2,256,33,33]\nparam w: f32[256,256,3,3]\n"
        "y = conv2d(x, w, padding=12, dilation=12)\nz = relu(y)\noutput z\n",
        // Windows that are held.
        "input x: f32[128,8,128,128]\nparam w: f32[64,8,3,3]\n"
        "y = conv2d(x, w)\nn = group_norm(y, num_groups=16)\n"
        "z = max_pool2d(n, kernel_size=4)\noutput z\n",
        // Joined groups: in one chunk, in several, with parts.
        "input x: f16[32,128,56,56]\nparam w: f16[128,4,3,3]\n"
        "y = conv2d(x, w, padding=1, groups=32)\nz = relu(y)\noutput z\n",
        "input x: f16[32,256,28,28]\nparam w: f16[256,8,3,3]\n"
        "y = conv2d(x, w, padding=1, groups=32)\nz = relu(y)\noutput z\n",
        "input x: f32[32,512,14,14]\nparam w: f32[512,16,3,3]\n"
        "y = conv2d(x, w, padding=1, groups=32)\nz = relu(y)\noutput z\n",
        "grade tf32\ninput x: f32[32,128,56,56]\nparam w: f32[128,4,3,3]\n"
        "y = conv2d(x, w, padding=1, groups=32)\nz = relu(y)\noutput z\n",
        // One part, as stored.
        "input x: f16[16,64,56,56]\nparam w: f16[64,64,3,3]\n"
        "y = conv2d(x, w, padding=1)\nz = relu(y)\noutput z\n"));

}  // namespace
}  // namespace kiln
