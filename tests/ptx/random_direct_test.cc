// Random convolutions for kernels of first, last and linear layers
// (stem_conv2d.cu, head_conv2d.cu, linear.cu) against the reference, without a
// GPU. Prevents what named plans do not think of: filters, strides, dilations
// and paddings in which accesses, runs of quads and tiles begin and end
// anywhere.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "tests/jit/compile/compile_testing.h"
#include "tests/jit/plan/plan_generator.h"
#include "tests/ptx/comparison.h"
#include "tests/ptx/random_conv_plans.h"

namespace kiln::ptx {
namespace {

constexpr uint64_t kLayers = 40;

std::string LayerText(TestRandom& random, const std::string& type,
                      int64_t images, int64_t channels, int64_t results,
                      const std::array<ConvAxis, 2>& axes) {
  const bool has_bias = random.OneIn(2);
  return fmt::format(
      "input x: {0}[{1},{2},{3},{4}]\nparam w: {0}[{5},{2},{6},{7}]\n{8}"
      "c = conv2d(x, w{9}, stride=[{10},{11}], padding=[{12},{13}], "
      "dilation=[{14},{15}])\ny = {16}(c)\noutput y\n",
      type, images, channels, axes[0].input, axes[1].input, results,
      axes[0].kernel, axes[1].kernel,
      has_bias ? fmt::format("param b: {}[{}]\n", type, results) : "",
      has_bias ? ", b" : "", axes[0].stride, axes[1].stride, axes[0].padding,
      axes[1].padding, axes[0].dilation, axes[1].dilation,
      random.Pick({"relu", "silu", "tanh", "gelu", "sigmoid"}));
}

// Such that the result has `output` rows or columns, and some of the input's
// may lie behind the last that it reads.
void FindInput(TestRandom& random, int64_t output, ConvAxis* axis) {
  axis->input = (output - 1) * axis->stride + axis->reach() -
                2 * axis->padding + random.Int(0, axis->stride - 1);
}

// Of up to four channels and 16 bits, rows of whole accesses.
std::string FirstLayer(uint64_t seed) {
  TestRandom random(seed);
  for (;;) {
    std::array<ConvAxis, 2> axes;
    for (ConvAxis& axis : axes) {
      axis.kernel = random.Int(1, 7);
      axis.stride = random.Pick({1, 1, 2, 2, 3, 4});
      axis.dilation = random.Pick({1, 1, 1, 2, 3});
      axis.padding = random.OneIn(8) ? random.Int(4, 12) : random.Int(0, 3);
    }
    FindInput(random, random.Int(2, 20), &axes[0]);
    FindInput(random, 8 * random.Int(1, 8), &axes[1]);
    const int64_t taps = axes[0].kernel * axes[1].kernel;
    if (taps == 1 || taps > 36 || axes[0].input < 1 || axes[1].input < 1) {
      continue;
    }
    return LayerText(random, random.Pick({"f16", "bf16"}), random.Int(1, 3),
                     random.Int(1, 4),
                     random.Pick({4, 8, 13, 16, 24, 40, 64, 70, 128}), axes);
  }
}

// Of few results, whose columns times theirs are 16 at most.
std::string LastLayer(uint64_t seed) {
  TestRandom random(seed);
  for (;;) {
    std::array<ConvAxis, 2> axes;
    axes[0].kernel = random.Int(1, 5);
    axes[1].kernel = random.Int(1, 4);
    for (ConvAxis& axis : axes) {
      axis.dilation = random.Pick({1, 1, 2, 3});
      axis.padding = random.OneIn(6) ? random.Int(3, 12) : random.Int(0, 2);
    }
    axes[0].input = random.Int(2, 26);
    axes[1].input = 8 * random.Int(1, 20);
    const int64_t images = random.Int(1, 3);
    const int64_t channels = random.Pick({16, 20, 24, 31, 33, 48, 64});
    const int64_t results = random.Int(1, 16 / axes[1].kernel);
    const bool is_taken =
        axes[0].Output(false) > 1 && axes[1].Output(false) > 0 &&
        axes[1].Output(false) % 4 == 0 &&
        images * axes[0].Output(false) * axes[1].Output(false) >= 448 &&
        channels * results >= 48 && axes[0].kernel * axes[1].kernel > 1;
    if (!is_taken) continue;
    return LayerText(random, random.Pick({"f16", "bf16"}), images, channels,
                     results, axes);
  }
}

// Of so many products that lanes do not have them.
std::string LinearLayer(uint64_t seed) {
  TestRandom random(seed);
  for (;;) {
    std::array<ConvAxis, 2> axes;
    for (ConvAxis& axis : axes) {
      axis.kernel = axis.input = random.OneIn(4) ? random.Int(2, 5) : 1;
    }
    const int64_t images = random.Int(5, 150);
    const int64_t channels = random.Int(1, random.OneIn(3) ? 1000 : 100);
    const int64_t results = random.Int(1, 200);
    const int64_t inputs = channels * axes[0].input * axes[1].input;
    if (inputs > (inputs % 2 > 0 ? 512 : 3000)) continue;
    if (images * inputs * results <= 1 << 19) continue;
    return LayerText(random, random.Pick({"f16", "bf16"}), images, channels,
                     results, axes);
  }
}

class PtxRandomLayersTest : public testing::TestWithParam<uint64_t> {
 protected:
  // By a kernel whose file begins so; with infinities, off the grid, in another
  // order of warps.
  static void Check(const std::string& text, const std::string& file,
                    int linear = 0) {
    SCOPED_TRACE(text);
    TestRandom random(~GetParam());
    PlanRunOptions options;
    options.off_grid = random.Pick({0, 0, 1, 2, 4});
    options.tuning.linear = linear;
    options.schedule_seed = random.OneIn(3) ? random.Int(1, 99) : 0;
    const absl::StatusOr<PlanKernels> kernels =
        CompileToPtx(text, "sm_90a/1", TestToolchain(), options);
    ASSERT_TRUE(kernels.ok()) << DescribeFailure(kernels.status());
    ASSERT_EQ(kernels->files.size(), 1);
    EXPECT_TRUE(kernels->files[0].starts_with(file)) << kernels->files[0];
    InputOptions inputs;
    inputs.has_specials = random.OneIn(3);
    const absl::StatusOr<ReferenceRun> reference =
        RunReference(kernels->canonical, inputs);
    ASSERT_TRUE(reference.ok()) << reference.status();
    const absl::StatusOr<Comparison> result =
        CompareWithReference(*kernels, *reference, options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_LE(result->norm_error, ToleranceOf(kernels->canonical));
    EXPECT_EQ(result->num_wrong, 0) << result->first_wrong;
  }
};

TEST_P(PtxRandomLayersTest, FirstOnesAgreeWithTheReference) {
  Check(FirstLayer(GetParam()), "stem_conv2d");
}

TEST_P(PtxRandomLayersTest, LastOnesAgreeWithTheReference) {
  Check(LastLayer(GetParam()), "head_conv2d");
}

TEST_P(PtxRandomLayersTest, LinearOnesAgreeWithTheReference) {
  Check(LinearLayer(GetParam()), "linear",
        static_cast<int>(GetParam() % kMaxTuningRank));
}

std::string NameOfLayer(const testing::TestParamInfo<uint64_t>& info) {
  return fmt::format("seed_{}", info.param);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PtxRandomLayersTest,
                         testing::Range(uint64_t{1}, kLayers + 1), NameOfLayer);

}  // namespace
}  // namespace kiln::ptx
