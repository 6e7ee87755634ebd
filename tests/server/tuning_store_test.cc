#include "server/tuning_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/server/captured_log.h"

namespace kiln {
namespace {

using ::testing::HasSubstr;

v1::Tuning SomeTuning(const std::string& winner = "conv1") {
  v1::Tuning tuning;
  tuning.set_variant(winner);
  tuning.set_device("NVIDIA H100 80GB HBM3");
  tuning.set_measured_unix_ms(1'763'000'000'000);
  for (const char* variant : {"auto", "conv1"}) {
    v1::TuningMeasurement* const measured = tuning.add_measured();
    measured->set_variant(variant);
    measured->set_runs(50);
    measured->set_median_us(100);
  }
  return tuning;
}

class TuningStoreTest : public ::testing::Test {
 protected:
  TuningStoreTest() { std::filesystem::remove_all(folder_); }
  ~TuningStoreTest() override { std::filesystem::remove_all(folder_); }

  TuningStore Open() { return TuningStore(folder_.string(), nullptr); }
  void Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / name) << text;
  }

  const std::filesystem::path folder_ =
      ::testing::TempDir() + "/kiln_tunings_" + std::to_string(getpid());
  const std::string key_ = std::string(64, 'a');
};

TEST_F(TuningStoreTest, WhatIsStoredIsFoundAlsoAfterARestart) {
  {
    TuningStore store = Open();
    EXPECT_EQ(store.Find(key_), nullptr);
    ASSERT_TRUE(store.Put(key_, SomeTuning()).ok());
    ASSERT_NE(store.Find(key_), nullptr);
  }
  TuningStore store = Open();
  const TuningStore::Shared found = store.Find(key_);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->SerializeAsString(), SomeTuning().SerializeAsString());
  EXPECT_EQ(store.Find(std::string(64, 'b')), nullptr);
}

TEST_F(TuningStoreTest, TheLastTuningCounts) {
  TuningStore store = Open();
  ASSERT_TRUE(store.Put(key_, SomeTuning("conv1")).ok());
  ASSERT_TRUE(store.Put(key_, SomeTuning("auto")).ok());
  EXPECT_EQ(store.Find(key_)->variant(), "auto");
  EXPECT_EQ(Open().Find(key_)->variant(), "auto");
}

// Prevents a damaged file from being served, or from keeping kilnd down.
TEST_F(TuningStoreTest, DamageCountsAsNone) {
  ASSERT_TRUE(Open().Put(key_, SomeTuning()).ok());
  const std::filesystem::path file = folder_ / (key_ + ".json");
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  Write(std::string(64, 'b') + ".json", "{\"variant\": \"conv1\"}");
  Write(std::string(64, 'c') + ".json", "{\"unknown\": 1}");
  Write("readme.txt", "not a tuning");
  const CapturedLog log;
  TuningStore store = Open();
  EXPECT_EQ(store.Find(key_), nullptr);
  EXPECT_EQ(store.Find(std::string(64, 'b')), nullptr);
  EXPECT_THAT(log.text(), HasSubstr("Ignoring a tuning: " + file.string()));
  EXPECT_THAT(log.text(), HasSubstr("tuning.device"));
  EXPECT_THAT(log.text(), ::testing::Not(HasSubstr("readme")));
}

// Prevents a caller from believing in a tuning that the next start forgets.
TEST_F(TuningStoreTest, AFailedWriteIsAnErrorAndChangesNothing) {
  std::ofstream(folder_) << "a file in the folder's place";
  TuningStore store = Open();
  EXPECT_EQ(store.Put(key_, SomeTuning()).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(store.Find(key_), nullptr);
}

TEST_F(TuningStoreTest, ATuningHasADeviceMeasurementsAndAMeasuredWinner) {
  EXPECT_TRUE(CheckTuning(SomeTuning()).ok());
  const auto message = [](const v1::Tuning& tuning) {
    return std::string(CheckTuning(tuning).message());
  };
  v1::Tuning tuning = SomeTuning();
  tuning.clear_device();
  EXPECT_THAT(message(tuning), HasSubstr("tuning.device"));
  tuning = SomeTuning();
  tuning.clear_measured();
  EXPECT_THAT(message(tuning), HasSubstr("tuning.measured"));
  EXPECT_THAT(message(SomeTuning("conv2")), HasSubstr("tuning.variant"));
  tuning = SomeTuning();
  tuning.mutable_measured(1)->set_error("does not run");
  EXPECT_THAT(message(tuning), HasSubstr("tuning.variant"));
  tuning = SomeTuning();
  tuning.mutable_measured(0)->set_variant("fastest");
  EXPECT_THAT(message(tuning), HasSubstr("variant"));
}

}  // namespace
}  // namespace kiln
