#include "client/cli/tuning_measurement.h"

#include <algorithm>

namespace kiln::cli {
namespace {

constexpr int kWarmUpRounds = 3;
// What a run-to-run difference of clocks is worth.
constexpr double kNoise = 0.01;
constexpr double kResolutionUs = 1.0;

}  // namespace

double TunedVariant::Quartile(int part) const {
  if (times_us.empty()) return 0;
  const size_t last = times_us.size() - 1;
  const size_t at = last * static_cast<size_t>(part) / 4;
  const size_t rest = last * static_cast<size_t>(part) % 4;
  if (rest == 0) return static_cast<double>(times_us[at]);
  const double low = static_cast<double>(times_us[at]);
  const double high = static_cast<double>(times_us[at + 1]);
  return low + (high - low) * static_cast<double>(rest) / 4;
}

void MeasureInTurn(PlanTimer& timer, int runs,
                   const std::function<void(int done, int rounds)>& progress,
                   std::vector<TunedVariant>& variants) {
  const int rounds = kWarmUpRounds + runs;
  int set = 0;
  for (int round = 0; round < rounds; ++round) {
    for (TunedVariant& variant : variants) {
      if (!variant.plan.ok() || !variant.status.ok()) continue;
      set = (set + 1) % timer.sets();
      const absl::StatusOr<int64_t> time_us = timer.Time(*variant.plan, set);
      if (!time_us.ok()) {
        variant.status = time_us.status();
      } else if (round >= kWarmUpRounds) {
        variant.times_us.push_back(*time_us);
      }
    }
    progress(round + 1, rounds);
  }
  for (TunedVariant& variant : variants) {
    std::sort(variant.times_us.begin(), variant.times_us.end());
  }
}

int ChooseWinner(const std::vector<TunedVariant>& variants) {
  int first = -1;
  int fastest = -1;
  for (size_t i = 0; i < variants.size(); ++i) {
    if (!variants[i].measured()) continue;
    const int index = static_cast<int>(i);
    if (first < 0) first = fastest = index;
    if (variants[i].Quartile(2) < variants[fastest].Quartile(2)) {
      fastest = index;
    }
  }
  if (first == fastest) return first;
  const TunedVariant& challenger = variants[fastest];
  const double limit = variants[first].Quartile(2);
  const bool wins = challenger.Quartile(2) < limit * (1 - kNoise) &&
                    challenger.Quartile(2) < limit - kResolutionUs &&
                    challenger.Quartile(3) < variants[first].Quartile(1);
  return wins ? fastest : first;
}

}  // namespace kiln::cli
