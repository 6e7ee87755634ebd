#ifndef KILN_TESTS_PTX_COMPARISON_H_
#define KILN_TESTS_PTX_COMPARISON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/ptx/plan_run.h"

namespace kiln::ptx {

struct InputOptions {
  uint64_t seed = 1;
  // One infinity and one NaN in each input that is no parameter.
  bool has_specials = false;
  // What the rows, channels and images of the first input are multiplied by, in
  // turns.
  std::vector<double> row_factors = {1};
  std::vector<double> channel_factors = {1};
  std::vector<double> image_factors = {1};

  bool operator==(const InputOptions&) const = default;
};

// A plan's kernels against the reference in double, over all outputs.
struct Comparison {
  double norm_error = 0;    // of the difference, over the reference's norm
  double max_error = 0;     // over the root mean square of the reference
  int64_t num_wrong = 0;    // where one is finite and the other not, or the
                            // infinities or NaNs differ
  std::string first_wrong;  // of these
  int64_t num_special = 0;  // results of the reference that are not finite
  double run_seconds = 0;   // of the kernels
};

// Normally distributed inputs of a plan, and what the reference makes of them
// in double.
struct ReferenceRun {
  std::vector<std::vector<char>> inputs;
  std::vector<std::vector<double>> outputs;
};

// The last runs are kept: grades have the same. Not thread-safe. Errors: those
// of the reference.
absl::StatusOr<ReferenceRun> RunReference(const CanonicalPlan& plan,
                                          const InputOptions& inputs = {});

// Runs the kernels on the same inputs. Errors: those of RunOnProcessor.
absl::StatusOr<Comparison> CompareWithReference(
    const PlanKernels& kernels, const ReferenceRun& reference,
    const PlanRunOptions& options = {});

// What `norm_error` may be. TF32 has 11 significant bits; results in 16 bits
// are rounded, and what is multiplied is rounded to the type before.
double ToleranceOf(const CanonicalPlan& plan);

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_COMPARISON_H_
