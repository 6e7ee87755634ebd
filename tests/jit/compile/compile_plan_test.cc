// Longer than 400 lines because each kind of plan is compiled for each target.
#include "jit/compile/compile_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "fmt/format.h"
#include "jit/artifact/digest.h"
#include "jit/plan/errors.h"
#include "tests/jit/compile/compile_testing.h"
#include "tests/shape_sets.h"

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kChain[] = R"(
input x: f16[2,8,14,14]
param w: bf16[16,8,3,3]
y = conv2d(x, w, padding=1)
z = group_norm(y, num_groups=4)
t = tanh(z)
r = add(y, t)
l = logsumexp(r, dim=1)
output l
output t: f16
)";

// All that an artifact is made of, as one text.
std::string Fingerprint(const Artifact& artifact) {
  std::string text = artifact.key;
  for (const Module& module : artifact.modules) {
    text += "\n" + module.sha256 + "\n" + module.source;
  }
  for (const Step& step : artifact.variants[0].launch) {
    text += std::to_string(step.module) + " " + std::to_string(step.grid[0]);
  }
  return Sha256Hex(text);
}

TEST(CompilePlanTest, MakesOneModuleForEachKernel) {
  const auto artifact = CompileText(kChain, "sm_90a/132");
  ASSERT_TRUE(artifact.ok()) << DescribeFailure(artifact.status());
  // Weights; and, each with the convolution, statistics, chain and reduction.
  EXPECT_EQ(artifact->modules.size(), 4u);
  EXPECT_EQ(artifact->key, KeyOf(artifact->key_text));
  for (const Module& module : artifact->modules) {
    EXPECT_EQ(module.sha256, Sha256Hex(module.cubin));
    EXPECT_THAT(module.source, HasSubstr("struct Spec {"));
  }
  CheckLaunchRecord(*artifact);
}

// Each lane goes on with one of four pixels; what it chooses from must not go
// through memory, for which the plan would fall to the plain path.
TEST(CompilePlanTest, AReductionOfFourRowsStaysInRegisters) {
  const auto artifact = CompileText(R"(
input x: f32[64,3,66,66]
param w: f32[16,3,3,3]
y = conv2d(x, w)
z = group_norm(y, num_groups=8)
t = tanh(z)
r = add(y, t)
l = logsumexp(r, dim=1)
output l
)",
                                    "sm_90a/132");
  ASSERT_TRUE(artifact.ok()) << DescribeFailure(artifact.status());
  EXPECT_THAT(artifact->modules.back().source,
              AllOf(HasSubstr("kTilesM = 2"), HasSubstr("kiln_conv_reduce")));
}

// Many sums beside statistics do not fit in registers, for which the plan would
// fall to the plain path.
TEST(CompilePlanTest, AWideConvolutionAndItsNormStayOnTensorCoresOfAmpere) {
  const auto artifact = CompileText(R"(
input x: f32[4,128,64,64]
param w: f32[128,128,3,3]
y = conv2d(x, w, padding=1)
z = group_norm(y, num_groups=32)
output z
)",
                                    "sm_80/108");
  ASSERT_TRUE(artifact.ok()) << DescribeFailure(artifact.status());
  EXPECT_THAT(
      artifact->modules[1].source,
      AllOf(HasSubstr("conv_mma.cu"), HasSubstr("kiln_conv_statistics")));
}

// ptxas puts 8 bytes of the norm's kernel aside to have 32 registers. Prevents
// that the plan is therefore compiled again, with a convolution by warps.
TEST(CompilePlanTest, AKernelThatSpillsGetsMoreRegistersAndOthersStay) {
  const auto artifact = CompileText(R"(
input x: f32[3,80,128,128]
param w: f32[960,80,3,3]
param g: f32[960]
param b: f32[960]
c = conv2d(x, w, stride=3, padding=1)
y = group_norm(c, g, b, num_groups=32)
output y
)",
                                    "sm_90a/132");
  ASSERT_TRUE(artifact.ok()) << DescribeFailure(artifact.status());
  ASSERT_EQ(artifact->modules.size(), 3u);
  EXPECT_THAT(artifact->modules[1].source, HasSubstr("conv_wgmma.cu"));
  EXPECT_THAT(artifact->modules[2].source,
              HasSubstr("__launch_bounds__(256, 6)"));
  EXPECT_EQ(artifact->modules[2].entries.front().local_bytes, 0);
}

// The fastest tile of the second kernel spills whatever registers are spared
// for what follows. Without others it would be left to warps, five times as
// slow.
TEST(CompilePlanTest, ATileThatSpillsIsNotChosenAgain) {
  const auto artifact = CompileText(R"(
input x: f32[1,20,320,56]
param w: f32[512,20,3,3]
param b: f32[512]
param s: f32[512]
param t: f32[512]
c = conv2d(x, w, b, dilation=2)
d = neg(c)
n = group_norm(d, s, t, num_groups=2)
y = add(n, c)
output y
)",
                                    "sm_90a/132");
  ASSERT_TRUE(artifact.ok()) << DescribeFailure(artifact.status());
  const Step& last = artifact->variants[0].launch.back();
  EXPECT_THAT(artifact->modules[last.module].source,
              HasSubstr("conv_wgmma.cu"));
}

// ptxas spills in a reduction that has 64 registers, too. Prevents that no
// schedule is left, and the plan is refused.
// What leaves more registers free holds no images.
TEST(CompilePlanTest, AnotherTileIsTriedBeforeMoreIsLeftFree) {
  const auto artifact = CompileText(
      "input x: f16[32,12,13,13]\nparam w: f16[960,12,3,3]\n"
      "param b: f16[960]\ny = conv2d(x, w, b, padding=1)\nm = mish(y)\n"
      "n = group_norm(m, num_groups=5)\ng = gelu(n)\nz = softplus(g)\n"
      "output z\n",
      "sm_90a/132");
  ASSERT_TRUE(artifact.ok()) << DescribeFailure(artifact.status());
  EXPECT_TRUE(std::any_of(artifact->modules.begin(), artifact->modules.end(),
                          [](const Module& module) {
                            return module.source.find("kiln_conv_held") !=
                                   std::string::npos;
                          }));
}

TEST(CompilePlanTest, AReductionThatSpillsGetsMoreRegisters) {
  const auto artifact = CompileText(R"(
input x: f32[4,224,128,128]
param w: f32[224,20,2,2]
param g: f32[20]
param b: f32[20]
input r: f32[4,20,254,254]
c = conv_transpose2d(x, w, stride=2, padding=1)
n = group_norm(c, g, b, num_groups=1)
e = elu(n)
m = mul(e, r)
y = sum(m, dim=1, keepdim=true)
output y
)",
                                    "sm_90a/132");
  ASSERT_TRUE(artifact.ok()) << DescribeFailure(artifact.status());
  EXPECT_THAT(artifact->modules[1].source, HasSubstr("conv_wgmma.cu"));
  for (const Module& module : artifact->modules) {
    EXPECT_EQ(module.entries.front().local_bytes, 0) << module.source;
  }
}

TEST(CompilePlanTest, EqualKernelsShareAModule) {
  const auto artifact = CompileText(R"(
input a: f32[4,8]
input b: f32[4,8]
x = sum(a, dim=1)
y = sum(b, dim=1)
output x
output y
)",
                                    "sm_80/108");
  ASSERT_TRUE(artifact.ok()) << DescribeFailure(artifact.status());
  EXPECT_EQ(artifact->variants[0].launch.size(), 2u);
  EXPECT_EQ(artifact->modules.size(), 1u);
}

TEST(CompilePlanTest, AnOutputMayBeAnInput) {
  const auto artifact = CompileText(R"(
input x: f32[3,5]
output x
output x: bf16
)",
                                    "sm_75/40");
  ASSERT_TRUE(artifact.ok()) << DescribeFailure(artifact.status());
  EXPECT_EQ(artifact->variants[0].launch.size(), 1u);
  CheckLaunchRecord(*artifact);
}

// 64-bit positions through every template.
TEST(CompilePlanTest, TensorsOfMoreThan2To31ElementsCompile) {
  for (const char* target : {"sm_75/40", "sm_80/108", "sm_90a/132"}) {
    const auto artifact = CompileText(R"(
input x: f16[64,64,1024,1024]
param w: f16[64,1,3,3]
param v: bf16[64,32,3,3]
y = conv2d(x, w, padding=1, groups=64)
t = conv_transpose2d(y, v, stride=2, groups=2)
z = group_norm(t, num_groups=8)
p = avg_pool2d(z, kernel_size=3, stride=2, padding=1)
s = softmax(p, dim=1)
m = mean(s, dim=[0,2])
output m
output p: f16
)",
                                      target);
    ASSERT_TRUE(artifact.ok()) << DescribeFailure(artifact.status());
    CheckLaunchRecord(*artifact);
    for (const Module& module : artifact->modules) {
      if (module.source.find("pack_weights") != std::string::npos) continue;
      EXPECT_THAT(module.source, HasSubstr("using Index = long long;"));
    }
  }
}

// ... and where a convolution's blocks have whole images.
TEST(CompilePlanTest, WholeStatesOfMoreThan2To31ElementsCompile) {
  for (const char* target : {"sm_80/108", "sm_90a/132"}) {
    for (const char* behind :
         {"n = group_norm(c, num_groups=256)\ny = relu(n)",
          "n = group_norm(c, num_groups=256)\ny = max_pool2d(n, kernel_size=2)",
          "y = mean(c, dim=[2,3])"}) {
      const auto artifact = CompileText(fmt::format(R"(
input x: f32[65536,8,8,8]
param w: f32[1024,8,3,3]
c = conv2d(x, w, padding=1)
{}
output y
)",
                                                    behind),
                                        target);
      ASSERT_TRUE(artifact.ok()) << DescribeFailure(artifact.status());
    }
  }
}

// ... and where results of so large planes go through shared memory.
TEST(CompilePlanTest, StagedPlanesOfMoreThan2To31PixelsCompile) {
  for (const char* target : {"sm_80/108", "sm_90a/132"}) {
    const auto artifact = CompileText(R"(
input x: f16[1,1,46345,46347]
param w: f16[16,1,3,3]
c = conv2d(x, w)
y = softmax(c, dim=1)
output y
)",
                                      target);
    ASSERT_TRUE(artifact.ok()) << DescribeFailure(artifact.status());
  }
}

// What call_rewrites.h makes of functions, in one plan.
TEST(CompilePlanTest, CheaperFormsOfCallsCompile) {
  for (const char* target : {"sm_75/40", "sm_80/108", "sm_90a/132"}) {
    const auto artifact = CompileText(R"(
grade tf32
input x: f32[2,8,14,14]
param w: f32[16,8,3,3]
c = conv2d(x, w)
t = tanh(c)
s = sigmoid(c)
half = mul(s, 0.5)
small = tanh(half)
power = exp(small)
gate = silu(power)
gate2 = silu(s)
gate3 = mish(s)
gate4 = softplus(s)
wide = clamp(c, min=-3.0, max=9.0)
hard = hardswish(wide)
positive = relu(c)
hard2 = hardsigmoid(positive)
l = logsumexp(t, dim=1)
output gate
output gate2
output gate3
output gate4
output hard
output hard2
output l
)",
                                      target);
    ASSERT_TRUE(artifact.ok()) << DescribeFailure(artifact.status());
    std::string sources;
    for (const Module& module : artifact->modules) sources += module.source;
    for (const char* call :
         {"ApproximateTanh(", "TanhOfSmall(", "SoftplusBelow(", "Exp<", "Silu<",
          "Mish<", "Hardswish<", "Hardsigmoid<"}) {
      EXPECT_THAT(sources, HasSubstr(call)) << target;
    }
  }
}

TEST(CompilePlanTest, TheCpuTargetNeedsNoNvrtc) {
  const auto artifact = CompilePlan(RequestFor(kChain, "cpu"), nullptr);
  ASSERT_TRUE(artifact.ok());
  EXPECT_THAT(artifact->modules, IsEmpty());
  EXPECT_THAT(artifact->variants, IsEmpty());
  EXPECT_EQ(artifact->slots.size(), 4u);
}

TEST(CompilePlanTest, ACudaTargetWithoutNvrtcIsAFailedPrecondition) {
  const auto artifact = CompilePlan(RequestFor(kChain, "sm_80/108"), nullptr);
  EXPECT_EQ(artifact.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(CompilePlanTest, AVariantHasAKeyAndKernelsOfItsOwn) {
  CompileRequest request = RequestFor(R"(
input x: f32[112,64,64,64]
y = group_norm(x, num_groups=8)
output y
)",
                                      "sm_90a/132");
  const auto first = CompilePlan(request, &TestNvrtc());
  request.variant = "rows1";
  const auto second = CompilePlan(request, &TestNvrtc());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->key, second->key);
  EXPECT_NE(first->modules[0].sha256, second->modules[0].sha256);
  CheckLaunchRecord(*second);
}

TEST(CompilePlanTest, AnUnknownVariantIsInvalid) {
  CompileRequest request = RequestFor(kChain, "sm_80/108");
  request.variant = "fastest";
  const auto artifact = CompilePlan(request, &TestNvrtc());
  EXPECT_EQ(artifact.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailOf(artifact.status()).value, "fastest");
}

TEST(CompilePlanTest, AnUnknownArchitectureIsUnimplemented) {
  const auto artifact = CompileText(kChain, "sm_199/8");
  EXPECT_EQ(artifact.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(DetailOf(artifact.status()).value, "sm_199");
  EXPECT_THAT(DetailOf(artifact.status()).limit, HasSubstr("sm_80, "));
}

TEST(CompilePlanTest, TimesNvrtcApartFromTheRest) {
  CompilePlanTiming timing;
  const auto artifact =
      CompilePlan(RequestFor(kChain, "sm_90a/132"), &TestNvrtc(), &timing);
  ASSERT_TRUE(artifact.ok());
  EXPECT_GT(timing.nvrtc_us, timing.generate_us);
}

// Run as a child below: prints the fingerprint of a fresh process.
TEST(CompilePlanTest, DISABLED_PrintFingerprint) {
  const auto artifact = CompileText(kChain, "sm_90a/132");
  ASSERT_TRUE(artifact.ok());
  std::printf("fingerprint %s\n", Fingerprint(*artifact).c_str());
}

// Two clients that compile the same plan must be able to share the entry.
TEST(CompilePlanTest, IsByteIdenticalAcrossProcesses) {
  const auto here = CompileText(kChain, "sm_90a/132");
  ASSERT_TRUE(here.ok());
  char self[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
  const std::string command =
      std::string("cd / && TMPDIR=/ ") + self +
      " --gtest_also_run_disabled_tests --gtest_filter=*PrintFingerprint";
  FILE* const child = popen(command.c_str(), "r");
  ASSERT_NE(child, nullptr);
  std::string output;
  for (char buffer[256];
       std::fgets(buffer, sizeof(buffer), child) != nullptr;) {
    output += buffer;
  }
  EXPECT_EQ(pclose(child), 0);
  EXPECT_THAT(output, HasSubstr("fingerprint " + Fingerprint(*here)));
}

TEST(NvrtcCompilerTest, ARejectedSourceIsInternalWithLogAndSource) {
  const auto output = TestNvrtc().Compile("int x = y;", {}, "sm_80");
  EXPECT_EQ(output.status().code(), absl::StatusCode::kInternal);
  const ErrorDetail detail = DetailOf(output.status());
  EXPECT_THAT(detail.compile_log, HasSubstr("\"y\" is undefined"));
  EXPECT_EQ(detail.generated_source, "int x = y;");
}

TEST(NvrtcCompilerTest, IncludesComeFromTheHeadersAlone) {
  const std::vector<NvrtcCompiler::Header> headers = {
      {"answer.cuh", "__device__ int Answer() { return 42; }"}};
  const std::string source =
      "#include \"answer.cuh\"\n"
      "extern \"C\" __global__ void f(int* x) { *x = Answer(); }";
  EXPECT_TRUE(TestNvrtc().Compile(source, headers, "sm_80").ok());
  EXPECT_FALSE(TestNvrtc().Compile(source, {}, "sm_80").ok());
}

// A loop nest that NVRTC's optimiser unrolls, long enough to be asked during.
TEST(NvrtcCompilerTest, CancellingEndsACompileWithDeadlineExceeded) {
  const std::string source =
      "extern \"C\" __global__ void f(float* x) {\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < 20000; ++i) x[i] = x[i + 1] * sinf(x[i + 2]);\n"
      "}";
  TestNvrtc().set_cancelled([] { return true; });
  const auto output = TestNvrtc().Compile(source, {}, "sm_80");
  TestNvrtc().set_cancelled(nullptr);
  EXPECT_EQ(output.status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(NvrtcCompilerTest, KnowsItsVersion) {
  EXPECT_THAT(TestNvrtc().version(), HasSubstr("."));
}

TEST(NvrtcCompilerTest, AMissingLibraryIsAFailedPrecondition) {
  Toolchain toolchain;
  toolchain.library_path = "/nonexistent/libnvrtc.so.13";
  const auto loaded = NvrtcCompiler::Load(toolchain);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(NvrtcCompilerTest, ALibraryOfSomethingElseIsAFailedPrecondition) {
  Toolchain toolchain;
  toolchain.library_path = "libm.so.6";
  const auto loaded = NvrtcCompiler::Load(toolchain);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace kiln
