#ifndef KILN_CLIENT_CLI_TUNING_MEASUREMENT_H_
#define KILN_CLIENT_CLI_TUNING_MEASUREMENT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/compiled_plan.h"

namespace kiln::cli {

// Runs compiled forms of one plan. An interface, so that what is done with the
// times is tested without a GPU.
class PlanTimer {
 public:
  virtual ~PlanTimer() = default;
  // Sets of inputs and outputs that there are, to be taken in turn.
  virtual int sets() const = 0;
  // Microseconds on the device of one run on set `set` (0 to sets() - 1).
  virtual absl::StatusOr<int64_t> Time(const CompiledPlan& plan, int set) = 0;
};

// One variant of the plan and what was measured of it. `plan` holds why it
// could not be compiled, or `status` why it could not be run.
struct TunedVariant {
  std::string variant;  // "auto", "conv1"
  absl::StatusOr<CompiledPlan> plan;
  absl::Status status;
  std::vector<int64_t> times_us;  // ascending, once measured

  bool measured() const { return status.ok() && !times_us.empty(); }
  // The `part`-th of 4 quarters: 1 and 3 bound the middle half, 2 is the
  // median, 0 if nothing was measured.
  double Quartile(int part) const;
};

// Runs the variants in turn, `runs` times each after three rounds that do not
// count, so that all meet the same clocks and the same other users of the
// device. One that fails is left out from then on. `progress` is called after
// each round with (done, rounds).
void MeasureInTurn(PlanTimer& timer, int runs,
                   const std::function<void(int done, int rounds)>& progress,
                   std::vector<TunedVariant>& variants);

// The index of the variant to keep. That is the first measured one, the
// models' choice, unless the fastest is faster than it by more than one
// percent, more than a microsecond, the resolution, and its middle half lies
// below the first one's. -1: none was measured.
int ChooseWinner(const std::vector<TunedVariant>& variants);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_TUNING_MEASUREMENT_H_
