// What is made of measured times; the GPU is a script here.
#include "client/cli/tuning_measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "client/cli/daemon_timer.h"
#include "jit/plan/plan_text.h"
#include "jit/plan/validate.h"

namespace kiln::cli {
namespace {

using ::testing::ElementsAre;

// Takes as long as the script says of each key, by turns; a negative time is a
// failure.
class ScriptedTimer : public PlanTimer {
 public:
  explicit ScriptedTimer(std::map<std::string, std::vector<int64_t>> script,
                         int sets = 3)
      : script_(std::move(script)), sets_(sets) {}

  int sets() const override { return sets_; }
  absl::StatusOr<int64_t> Time(const CompiledPlan& plan, int set) override {
    order_.push_back(plan.key);
    used_sets_.push_back(set);
    const std::vector<int64_t>& times = script_.at(plan.key);
    const int64_t time = times[runs_[plan.key]++ % times.size()];
    if (time < 0) return absl::AbortedError("the executor died");
    return time;
  }

  const std::vector<std::string>& order() const { return order_; }
  const std::vector<int>& used_sets() const { return used_sets_; }

 private:
  std::map<std::string, std::vector<int64_t>> script_;
  const int sets_;
  std::map<std::string, size_t> runs_;
  std::vector<std::string> order_;
  std::vector<int> used_sets_;
};

TunedVariant Variant(const std::string& name) {
  CompiledPlan plan;
  plan.key = name;
  return {name, plan, {}, {}};
}

std::vector<TunedVariant> Measured(
    const std::map<std::string, std::vector<int64_t>>& script,
    const std::vector<std::string>& names, int runs = 40) {
  ScriptedTimer timer(script);
  std::vector<TunedVariant> variants;
  for (const std::string& name : names) variants.push_back(Variant(name));
  MeasureInTurn(
      timer, runs, [](int, int) {}, variants);
  return variants;
}

TEST(TuningMeasurementTest, VariantsTakeTurnsAndSetsRotate) {
  ScriptedTimer timer({{"auto", {10}}, {"conv1", {9}}});
  std::vector<TunedVariant> variants = {Variant("auto"), Variant("conv1")};
  int rounds = 0;
  MeasureInTurn(
      timer, 2, [&rounds](int, int all) { rounds = all; }, variants);
  EXPECT_EQ(rounds, 5);  // three to warm up
  EXPECT_EQ(timer.order().size(), 10u);
  EXPECT_EQ(timer.order()[0], "auto");
  EXPECT_EQ(timer.order()[1], "conv1");
  EXPECT_EQ(timer.order()[2], "auto");
  EXPECT_THAT(timer.used_sets(), ElementsAre(1, 2, 0, 1, 2, 0, 1, 2, 0, 1));
  EXPECT_THAT(variants[0].times_us, ElementsAre(10, 10));
}

TEST(TuningMeasurementTest, WarmUpRoundsDoNotCount) {
  const auto variants =
      Measured({{"auto", {900, 800, 700, 10, 10, 10, 10, 10}}}, {"auto"}, 5);
  EXPECT_THAT(variants[0].times_us, ElementsAre(10, 10, 10, 10, 10));
}

TEST(TuningMeasurementTest, QuartilesAreThoseOfTheSortedTimes) {
  TunedVariant variant = Variant("auto");
  EXPECT_EQ(variant.Quartile(2), 0);
  variant.times_us = {1, 2, 3, 4, 5};
  EXPECT_EQ(variant.Quartile(1), 2);
  EXPECT_EQ(variant.Quartile(2), 3);
  EXPECT_EQ(variant.Quartile(3), 4);
  variant.times_us = {1, 2};
  EXPECT_EQ(variant.Quartile(2), 1.5);
}

TEST(TuningMeasurementTest, TheFastestWins) {
  const auto variants =
      Measured({{"auto", {100, 101}}, {"conv1", {120}}, {"conv2", {80, 81}}},
               {"auto", "conv1", "conv2"});
  EXPECT_EQ(ChooseWinner(variants), 2);
}

// Prevents a choice by chance, which would differ from host to host.
TEST(TuningMeasurementTest, NoiseDoesNotWin) {
  // Less than a percent.
  EXPECT_EQ(ChooseWinner(Measured({{"auto", {1000}}, {"conv1", {995}}},
                                  {"auto", "conv1"})),
            0);
  // One microsecond is the resolution.
  EXPECT_EQ(ChooseWinner(
                Measured({{"auto", {5}}, {"conv1", {4}}}, {"auto", "conv1"})),
            0);
  // The spread is larger than the difference.
  EXPECT_EQ(
      ChooseWinner(Measured({{"auto", {100, 80}}, {"conv1", {85, 84, 95}}},
                            {"auto", "conv1"})),
      0);
}

TEST(TuningMeasurementTest, WhatFailsIsLeftOut) {
  ScriptedTimer timer({{"auto", {100}}, {"conv1", {50, -1}}, {"conv3", {90}}});
  std::vector<TunedVariant> variants = {Variant("auto"), Variant("conv1"),
                                        Variant("conv2"), Variant("conv3")};
  variants[2].plan = absl::InternalError("does not compile");
  MeasureInTurn(
      timer, 5, [](int, int) {}, variants);
  EXPECT_FALSE(variants[1].measured());
  EXPECT_FALSE(variants[2].measured());
  EXPECT_EQ(ChooseWinner(variants), 3);
  EXPECT_EQ(std::count(timer.order().begin(), timer.order().end(), "conv1"), 2);
}

TEST(TuningMeasurementTest, WithoutAMeasurementThereIsNoWinner) {
  EXPECT_EQ(ChooseWinner(Measured({{"auto", {-1}}}, {"auto"})), -1);
}

SetLayout LayoutOf(const std::string& text) {
  const Plan plan = *ParsePlanText(text);
  return LayOutSets(plan, *ValidatePlan(plan));
}

TEST(SetLayoutTest, TensorsAreAlignedAndApart) {
  const SetLayout layout = LayoutOf(
      "input x: f32[3]\ninput z: f16[1000]\ny = add(x, 1.0)\n"
      "t = relu(z)\noutput y\noutput t: f16\n");
  EXPECT_THAT(layout.inputs, ElementsAre(0, 256));
  EXPECT_THAT(layout.outputs, ElementsAre(2304, 2560));
  EXPECT_EQ(layout.inputs_bytes, 2304);
  EXPECT_EQ(layout.size_bytes, 4608);
  EXPECT_EQ(layout.sets, 16);
}

// 60 MB of L2 cache, in the largest GPU known here.
TEST(SetLayoutTest, LargeTensorsNeedFewSets) {
  EXPECT_EQ(
      LayoutOf("input x: f32[128,8,128,128]\ny = relu(x)\noutput y\n").sets, 3);
  EXPECT_EQ(
      LayoutOf("input x: f32[112,64,512,512]\ny = relu(x)\noutput y\n").sets,
      1);
}

}  // namespace
}  // namespace kiln::cli
