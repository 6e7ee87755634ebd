// Artifacts of a real daemon, launched by this process on a real GPU: in a
// context and on a stream of its own, directly and from a CUDA graph.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "client/cli/launch.h"
#include "client/client.h"
#include "jit/run/cuda_device.h"
#include "jit/run/cuda_handles.h"
#include "jit/run/driver_table.h"
#include "tests/gpu/graph_driver.h"
#include "tests/gpu/loaded_plan.h"

namespace kiln::gpu {
namespace {

constexpr char kPointwise[] = R"(
input x: f16[3,5,31,33]
input z: f16[3,5,31,33]
a = mul(x, 0.5)
b = add(a, z)
y = gelu(b)
output y
)";

constexpr char kConvNormLogSumExp[] = R"(
input x: f32[2,8,40,24]
param w: f32[64,8,3,3]
param b: f32[64]
param weight: f32[64]
param bias: f32[64]
conv = conv2d(x, w, b)
norm = group_norm(conv, weight, bias, num_groups=16)
t = tanh(norm)
h = hardswish(t)
r = add(h, conv)
y = logsumexp(r, dim=1, keepdim=true)
output y
)";

constexpr char kConvNormPool[] = R"(
input x: f32[2,8,40,24]
param w: f32[64,8,3,3]
param b: f32[64]
param weight: f32[64]
param bias: f32[64]
param scale: f32[64,1,1]
conv = conv2d(x, w, b)
norm = group_norm(conv, weight, bias, num_groups=16)
scaled = mul(norm, scale)
pooled = max_pool2d(scaled, kernel_size=4)
y = clamp(pooled, min=0, max=1)
output y
)";

constexpr char kConvTransposeNorm[] = R"(
input x: f32[2,64,20,24]
param w: f32[64,64,3,3]
param b: f32[64]
param weight: f32[64]
param bias: f32[64]
conv = conv_transpose2d(x, w, b)
act = gelu(conv)
y = group_norm(act, weight, bias, num_groups=8)
output y
)";

constexpr char kGroupNorm[] = R"(
input x: f32[8,64,96,96]
param weight: f32[64]
param bias: f32[64]
y = group_norm(x, weight, bias, num_groups=8)
output y
)";

struct NamedPlan {
  const char* name;
  const char* text;
};

class ClientLaunchTest : public testing::TestWithParam<NamedPlan> {
 protected:
  void SetUp() override {
    ConnectOptions options = DefaultConnectOptions();
    options.idle_exit = "10s";
    absl::StatusOr<Client> client = Client::Connect(options);
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    driver_ = DriverTable::Load().value();
    device_ = DescribeDevice(*driver_, 0).value();
    graph_driver_ = GraphDriver::Load().value();
    context_.emplace(
        OwnContext::Create(*graph_driver_, device_.handle).value());
    stream_ = CreateStream(*driver_).value();
    auto plan = LoadedPlan::Load(*client_, *driver_, device_, GetParam().text);
    ASSERT_TRUE(plan.ok()) << plan.status();
    plan_ = *std::move(plan);
  }

  // Members are destroyed in reverse order: the context last but the driver.
  std::optional<Client> client_;
  std::optional<DriverTable> driver_;
  CudaDevice device_;
  std::optional<GraphDriver> graph_driver_;
  std::optional<OwnContext> context_;
  CudaStream stream_;
  std::unique_ptr<LoadedPlan> plan_;
};

TEST_P(ClientLaunchTest, IsRightOnTheStreamOfTheCaller) {
  for (uint64_t version = 1; version <= 2; ++version) {
    cli::RunTensors tensors = plan_->Tensors(/*seed=*/version);
    ASSERT_TRUE(plan_->Upload(stream_.get(), tensors).ok());
    ASSERT_TRUE(plan_->Launch(stream_.get(), version).ok());
    ASSERT_TRUE(plan_->Download(stream_.get(), tensors).ok());
    EXPECT_EQ(plan_->Complaint(tensors), "");
  }
}

TEST_P(ClientLaunchTest, GraphReplaysOnChangedInputs) {
  cli::RunTensors tensors = plan_->Tensors(/*seed=*/10);
  ASSERT_TRUE(plan_->Upload(stream_.get(), tensors).ok());
  ASSERT_TRUE(plan_->Prepare(stream_.get(), /*parameter_version=*/1).ok());
  RecordedGraph graph(*graph_driver_);
  ASSERT_TRUE(graph.Begin(stream_.get()).ok());
  ASSERT_TRUE(plan_->Launch(stream_.get(), /*parameter_version=*/1).ok());
  const absl::Status ended = graph.End(stream_.get());
  ASSERT_TRUE(ended.ok()) << ended;
  for (uint64_t seed = 11; seed <= 13; ++seed) {
    cli::RunTensors next = plan_->Tensors(seed);
    for (size_t i = 0; i < next.inputs.size(); ++i) {
      if (plan_->compiled().plan.inputs[i].role == InputRole::kParameter) {
        next.inputs[i] = tensors.inputs[i];
      }
    }
    ASSERT_TRUE(
        plan_->Upload(stream_.get(), next, /*with_parameters=*/false).ok());
    ASSERT_TRUE(graph.Replay(stream_.get()).ok());
    ASSERT_TRUE(plan_->Download(stream_.get(), next).ok());
    EXPECT_EQ(plan_->Complaint(next), "") << "replay " << seed - 10;
  }
}

// The same machine code in another process must give the same bits.
TEST_P(ClientLaunchTest, DaemonAnswersTheSameBits) {
  cli::RunTensors here = plan_->Tensors(/*seed=*/20);
  cli::RunTensors there = here;
  ASSERT_TRUE(plan_->Upload(stream_.get(), here).ok());
  ASSERT_TRUE(plan_->Launch(stream_.get(), /*parameter_version=*/1).ok());
  ASSERT_TRUE(plan_->Download(stream_.get(), here).ok());
  const auto times_us = cli::LaunchInDaemon(*client_, plan_->compiled(),
                                            "cuda:0", /*repeat=*/2, there);
  ASSERT_TRUE(times_us.ok()) << times_us.status();
  for (size_t i = 0; i < here.outputs.size(); ++i) {
    EXPECT_TRUE(here.outputs[i].elements == there.outputs[i].elements);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Plans, ClientLaunchTest,
    testing::Values(NamedPlan{"Pointwise", kPointwise},
                    NamedPlan{"GroupNorm", kGroupNorm},
                    NamedPlan{"ConvNormLogSumExp", kConvNormLogSumExp},
                    NamedPlan{"ConvNormPool", kConvNormPool},
                    NamedPlan{"ConvTransposeNorm", kConvTransposeNorm}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace kiln::gpu
