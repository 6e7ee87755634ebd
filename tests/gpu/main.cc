#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "jit/run/cuda_device.h"
#include "jit/run/driver_table.h"

namespace {

constexpr int kSkipped = 77;  // SKIP_RETURN_CODE of CMakeLists.txt

absl::Status FindGpu() {
  const auto driver = kiln::DriverTable::Load();
  if (!driver.ok()) return driver.status();
  return kiln::DescribeDevice(*driver, 0).status();
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (const absl::Status status = FindGpu(); !status.ok()) {
    fmt::print("kiln_gpu_test: SKIPPED, there is no GPU: {}\n",
               std::string(status.message()));
    return kSkipped;
  }
  return RUN_ALL_TESTS();
}
