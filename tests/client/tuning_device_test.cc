#include "client/cli/tuning_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::cli {
namespace {

using ::testing::HasSubstr;

ServerInfo InfoWithGpus() {
  ServerInfo info;
  info.devices = {{"cpu", "reference", "cpu", "ready", ""},
                  {"cuda:0", "NVIDIA A100", "sm_80/108", "ready", "GPU-0"},
                  {"cuda:1", "NVIDIA H100", "sm_90a/132", "ready", "GPU-1"}};
  return info;
}

std::string Found(const std::string& device, const std::string& target) {
  const auto found = FindTuningDevice(InfoWithGpus(), device, target);
  return found.ok() ? found->device : std::string(found.status().message());
}

TEST(TuningDeviceTest, ADeviceIsFoundByNameOrTarget) {
  EXPECT_EQ(Found("", ""), "cuda:0");
  EXPECT_EQ(Found("cuda:1", ""), "cuda:1");
  EXPECT_EQ(Found("", "sm_90a/132"), "cuda:1");
  EXPECT_EQ(Found("cuda:1", "sm_90a/132"), "cuda:1");
}

TEST(TuningDeviceTest, ErrorsNameOptionValueAndWhatThereIs) {
  EXPECT_THAT(Found("cuda:2", ""),
              HasSubstr("--device: the daemon has no such device (got cuda:2, "
                        "allowed: cuda:0, cuda:1)"));
  EXPECT_THAT(Found("", "sm_89/142"),
              HasSubstr("--target: no device of the daemon has it (got "
                        "sm_89/142, allowed: sm_80/108, sm_90a/132)"));
  EXPECT_THAT(Found("cuda:0", "sm_90a/132"),
              HasSubstr("--target: the device has another one (got "
                        "sm_90a/132, allowed: sm_80/108)"));
  EXPECT_THAT(Found("cpu", ""),
              HasSubstr("--device: the cpu has no schedules"));
  EXPECT_THAT(Found("", "cpu"),
              HasSubstr("--target: the cpu has no schedules"));
}

TEST(TuningDeviceTest, WithoutAGpuTheErrorSaysSo) {
  const auto found = FindTuningDevice({}, "", "");
  EXPECT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(found.status().message()),
              HasSubstr("this daemon has no GPU"));
}

// Prevents evidence that is made up.
TEST(TuningDeviceTest, WithoutADriverTheClocksStayUnknown) {
  v1::Tuning tuning;
  DescribeDriver("GPU-0", "/nonexistent/libcuda.so", &tuning);
  EXPECT_EQ(tuning.clock_mhz(), 0);
  EXPECT_EQ(tuning.memory_clock_mhz(), 0);
}

}  // namespace
}  // namespace kiln::cli
