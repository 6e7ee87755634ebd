#ifndef KILN_CLIENT_CLI_VERIFICATION_H_
#define KILN_CLIENT_CLI_VERIFICATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "jit/plan/plan.h"

namespace kiln::cli {

// How far an output is from the reference in double.
struct Deviation {
  double relative_norm = 0;     // ||y - ref|| / ||ref||, over finite elements
  double max_abs = 0;           // max |y - ref|, over finite elements
  int64_t max_at = 0;           // its element
  double got = 0, wanted = 0;   // its two values
  double max_wanted = 0;        // max |ref|
  int64_t unequal_special = 0;  // NaN or infinity on one side only
};

Deviation Compare(const std::vector<double>& got,
                  const std::vector<double>& wanted);

// What a right result of `plan` may deviate by.
struct Bound {
  double relative_norm = 0;
  double max_abs_over_max = 0;  // of max |y - ref| / max |ref|
  bool Holds(const Deviation& deviation) const;
};

// The bound of an output of type `dtype`, from first principles:
//   u      half an ulp of `dtype`, for the one rounding of the output;
//   sum over ops of e * sqrt(k), the expected growth of rounding errors in a
//   sum of k terms (Higham, Accuracy and Stability, section 2.8), with e the
//   unit roundoff of f32, or of tf32 in the products of convolutions of that
//   grade;
// times 16 for the relative norm, room for what later ops magnify, and 8 times
// that for single elements. On `cpu`, which computes in double: u alone.
// `values` are those of ValidatePlan.
Bound BoundOf(const Plan& plan, const std::vector<TensorDesc>& values,
              DataType dtype, bool on_cpu);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_VERIFICATION_H_
