// Tuning without a GPU: what cannot be tuned, and what a stored tuning does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "client/connection.h"
#include "jit/plan/plan_text.h"
#include "proto/plan_converter.h"
#include "tests/e2e/daemon.h"

namespace kiln::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr char kTunedDevice[] = "sm_90a/132";
constexpr char kPlan[] =
    "input x: f32[112,64,64,64]\ny = group_norm(x, num_groups=8)\noutput y\n";

class TuneTest : public testing::Test {
 protected:
  TuneTest() : plan_(daemon_.folder() / "plan.kiln") {
    WriteWhole(plan_, kPlan);
  }

  absl::StatusOr<v1::StoreTuningResponse> Store(const std::string& winner) {
    v1::StoreTuningRequest request;
    *request.mutable_plan() = ToProto(*ParsePlanText(kPlan));
    request.set_target(kTunedDevice);
    v1::Tuning* const tuning = request.mutable_tuning();
    tuning->set_variant(winner);
    tuning->set_device("NVIDIA H100 80GB HBM3");
    tuning->set_measured_unix_ms(1'763'000'000'000);
    for (const char* variant : {"auto", "rows1"}) {
      v1::TuningMeasurement* const measured = tuning->add_measured();
      measured->set_variant(variant);
      measured->set_runs(50);
      measured->set_median_us(variant == winner ? 90 : 100);
    }
    const auto connection = daemon_.OpenConnection();
    return connection->Call(connection->compiler(),
                            &v1::Compiler::Stub::StoreTuning, request);
  }

  std::string Key(const std::string& variant) {
    CompileOptions options;
    options.target = kTunedDevice;
    options.variant = variant;
    const auto compiled =
        daemon_.Connect().Compile(*ParsePlanText(kPlan), options);
    EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
    return compiled.ok() ? compiled->key : "";
  }

  json Json(std::vector<std::string> arguments, int status) {
    arguments.push_back("--json");
    const CommandResult result = daemon_.Kiln(arguments);
    EXPECT_EQ(result.status, status) << result.err;
    return json::parse(result.out, nullptr, false);
  }

  Daemon daemon_;
  const std::string plan_;
};

TEST_F(TuneTest, WithoutAGpuNothingIsTuned) {
  const json missing = Json({"tune", plan_}, 2);
  EXPECT_EQ(missing["schema"], "kiln.error/1");
  EXPECT_EQ(missing["field"], "--device");
  EXPECT_EQ(missing["value"], "cuda:0");
  EXPECT_EQ(missing["limit"], "none: this daemon has no GPU");

  const json target = Json({"tune", plan_, "--target", "h100-sxm"}, 2);
  EXPECT_EQ(target["field"], "--target");
  EXPECT_EQ(target["value"], kTunedDevice);
}

TEST_F(TuneTest, TheCpuHasNothingToTune) {
  EXPECT_EQ(Json({"tune", plan_, "--device", "cpu"}, 2)["field"], "--device");
  EXPECT_EQ(Json({"tune", plan_, "--target", "cpu"}, 2)["field"], "--target");
}

TEST_F(TuneTest, WrongArgumentsAreUsageErrors) {
  const json target = Json({"tune", plan_, "--target", "h101"}, 2);
  EXPECT_EQ(target["value"], "h101");
  EXPECT_THAT(target["limit"].get<std::string>(), HasSubstr("h100-sxm"));
  Json({"tune", plan_, "--runs", "1"}, 2);
  Json({"tune"}, 2);
  WriteWhole(daemon_.folder() / "bad.kiln", "output y\n");
  Json({"tune", daemon_.folder() / "bad.kiln"}, 5);
}

TEST_F(TuneTest, AStoredTuningDecidesAlsoAfterARestart) {
  const std::string first = Key("");
  EXPECT_EQ(first, Key("auto"));
  const auto stored = Store("rows1");
  ASSERT_TRUE(stored.ok()) << stored.status().ToString();
  EXPECT_EQ(Key(""), stored->key());
  EXPECT_EQ(Key("rows1"), stored->key());
  EXPECT_NE(Key(""), first);
  EXPECT_EQ(Key("auto"), first);

  daemon_.process().Signal(SIGTERM);
  EXPECT_EQ(daemon_.process().Wait(), 0);
  daemon_.Start();
  EXPECT_EQ(Key(""), stored->key());
}

TEST_F(TuneTest, ExplainSaysWhereTheChoiceCameFrom) {
  const std::vector<std::string> explain = {"explain", plan_, "--target",
                                            kTunedDevice, "--schedule"};
  EXPECT_THAT(daemon_.Kiln(explain).out, HasSubstr("no tuning is stored"));
  ASSERT_TRUE(Store("rows1").ok());
  const std::string text = daemon_.Kiln(explain).out;
  EXPECT_THAT(text, HasSubstr("rows1 by tuning, NVIDIA H100 80GB HBM3, 2025-11"
                              "-13"));
  EXPECT_THAT(text, HasSubstr("-> rows1        90.0 us"));
  EXPECT_THAT(text, HasSubstr("variant rows1 asks for number 2"));
  const json result = Json(explain, 0)["results"][0];
  EXPECT_EQ(result["variant"], "rows1");
  EXPECT_EQ(result["tuning"]["measured"][0]["median_us"], 100);
  EXPECT_THAT(result["key_text"].get<std::string>(),
              HasSubstr("variant: rows1"));
}

TEST_F(TuneTest, RecordsAndVariantsAreChecked) {
  EXPECT_EQ(Store("conv7").status().code(), absl::StatusCode::kInvalidArgument);
  CompileOptions options;
  options.target = kTunedDevice;
  options.variant = "fastest";
  Client client = daemon_.Connect();
  const Plan plan = *ParsePlanText(kPlan);
  const absl::Status unknown = client.Compile(plan, options).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("conv<1 to 15>"));
  options.target = "cpu";
  options.variant = "rows1";
  EXPECT_EQ(client.Compile(plan, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace kiln::e2e
