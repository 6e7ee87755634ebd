#ifndef KILN_CLIENT_CLI_VERIFICATION_H_
#define KILN_CLIENT_CLI_VERIFICATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "jit/plan/plan.h"

namespace kiln::cli {

// How far an output is from the reference in double.
struct Deviation {
  double relative_norm = 0;     // ||y - ref|| / ||ref||, as Compare has them
  double max_abs = 0;           // max |y - ref|
  int64_t max_at = 0;           // its element
  double got = 0, wanted = 0;   // its two values
  double max_wanted = 0;        // max |ref|
  int64_t unequal_special = 0;  // elements that no difference measures
};

// Compares `got`, of type `dtype`, with the unrounded `wanted`. Elements that
// are both NaN, or the same infinity once `wanted` is rounded to `dtype`, are
// equal and count in no norm. An infinity of `got` where the rounded reference
// is finite counts as the least number that rounds to it, so that either may
// overflow alone where both are within the bound of the largest finite value.
Deviation Compare(DataType dtype, const std::vector<double>& got,
                  const std::vector<double>& wanted);

// What a right result of `plan` may deviate by.
struct Bound {
  double relative_norm = 0;
  double max_abs_over_max = 0;  // of max |y - ref| / max |ref|
  bool Holds(const Deviation& deviation) const;
};

// The bound of an output of type `dtype` on a device that computes in f32, as
// norm_bound = u_out + 16 * sum over ops of e * sqrt(k), and for one element
// u_out + 8 * (norm_bound - u_out):
//
//   u_out    the one rounding of the output: half an ulp of `dtype`.
//   e        the unit roundoff of the op's arithmetic: 2^-24 for f32; 2^-11
//            for products of tf32 in convolutions of that grade; for a cast
//            that of its type, because a value that f32 moves across the
//            middle of two neighbours rounds to the other one.
//   sqrt(k)  a sum of k terms makes k roundings whose errors are independent
//            and of mean zero, so they add up to sqrt(k), not k, of them
//            (Higham, Accuracy and Stability, section 2.8). That holds relative
//            to the result both for terms of one sign and for random signs,
//            where partial sums and result shrink alike. Order of summation,
//            split sums and fused multiply-adds only lower it.
//   16       what later ops make of the error so far: the relative error of
//            x - mean grows by |x| / |x - mean|, that of exp(x) by |x|, that
//            of a residual sum by its cancellation. All are below 16 for
//            values of order 1, which the random inputs are made to give.
//   8        the largest of n errors of normal distribution is sqrt(2 ln n)
//            times their root mean square: less than 8 for n below 2^46.
//
// On `cpu`, which computes in double: u_out alone, and slack for sums in
// double. `values` are those of ValidatePlan.
Bound BoundOf(const Plan& plan, const std::vector<TensorDesc>& values,
              DataType dtype, bool on_cpu);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_VERIFICATION_H_
