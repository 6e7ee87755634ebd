#ifndef KILN_TESTS_JIT_REFERENCE_EVALUATE_H_
#define KILN_TESTS_JIT_REFERENCE_EVALUATE_H_

#include <cstdint>
#include <string_view>
#include <vector>

namespace kiln {

using Values = std::vector<double>;

// The outputs of plan text for `inputs`, which are rounded to their storage
// types, unrounded. Fails the running test and returns nothing if the plan is
// wrong.
std::vector<Values> EvaluateAll(std::string_view plan_text,
                                const std::vector<Values>& inputs);

// The one output of a plan that has one.
Values Evaluate(std::string_view plan_text, const std::vector<Values>& inputs);

// `count` normally distributed f32 numbers, the same for the same seed.
Values RandomValues(int64_t count, int seed);

}  // namespace kiln

#endif  // KILN_TESTS_JIT_REFERENCE_EVALUATE_H_
