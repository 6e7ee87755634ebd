// Launch records and the driver calls they must lead to. The Python client
// runs the same files: client/python/tests/test_launch_goldens.py.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "jit/run/loaded_artifact.h"
#include "proto/artifact_converter.h"
#include "tests/jit/run/fake_driver.h"

namespace kiln {
namespace {

using nlohmann::json;

std::vector<std::string> GoldenFiles() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(KILN_GOLDENS)) {
    if (entry.path().extension() == ".json") {
      files.push_back(entry.path().stem());
    }
  }
  return files;
}

// As far as it can be read and loaded.
absl::StatusOr<std::unique_ptr<LoadedArtifact>> Load(const DriverTable& driver,
                                                     const CudaDevice& device,
                                                     const json& golden) {
  v1::Artifact message;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(
                  golden.at("artifact").dump(), &message)
                  .ok());
  const absl::StatusOr<Artifact> artifact = FromProto(message);
  if (!artifact.ok()) return artifact.status();
  return LoadedArtifact::Load(driver, device, *artifact);
}

class LaunchGoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(LaunchGoldenTest, LeadsToTheDriverCalls) {
  const json golden = json::parse(
      std::ifstream(std::string(KILN_GOLDENS) + "/" + GetParam() + ".json"));
  FakeDriver fake;
  for (const auto& [name, value] : golden.at("device").items()) {
    fake.Set(name, value);
  }
  const CudaDevice device = DescribeDevice(fake.table(), 0).value();
  const auto loaded = Load(fake.table(), device, golden);
  if (golden.contains("load_error")) {
    EXPECT_THAT(std::string(loaded.status().message()),
                testing::HasSubstr(golden["load_error"]));
    return;
  }
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->variant_index(), golden.at("variant"));

  LaunchAreas areas{.workspace = golden.at("workspace"),
                    .prepared = golden.at("prepared")};
  for (const json& call : golden.at("calls")) {
    fake.Set("capturing", call.at("capturing"));
    const std::vector<driver::DevicePtr> slots = call.at("slots");
    const absl::Status status =
        (*loaded)->Launch(nullptr, slots, call.at("parameter_version"), areas);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(fake.TakeLog(),
              call.at("driver").get<std::vector<std::string>>());
  }
}

INSTANTIATE_TEST_SUITE_P(Goldens, LaunchGoldenTest,
                         testing::ValuesIn(GoldenFiles()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace kiln
