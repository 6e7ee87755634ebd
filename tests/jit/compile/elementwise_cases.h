#ifndef KILN_TESTS_JIT_COMPILE_ELEMENTWISE_CASES_H_
#define KILN_TESTS_JIT_COMPILE_ELEMENTWISE_CASES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "jit/compile/schedule.h"
#include "jit/plan/canonical.h"
#include "tests/jit/compile/host_kernels.h"

namespace kiln {

// Plans of elementwise calls, on inputs x and y of f32[1024,8], that run on the
// host: as they are, and with nothing known of their values.
constexpr size_t kCaseElements = 8192, kCaseColumns = 8;

struct ElementwiseCase {
  std::string text;
  CanonicalPlan plan;
  Schedule schedule;
};

// The plan of `lines`, whose values in `outputs` are its outputs, in f32.
ElementwiseCase ElementwiseCaseOf(const std::string& lines,
                                  const std::vector<std::string>& outputs);

// Such that no call is rewritten.
Schedule WithoutRanges(Schedule schedule);

// Zeros, denormals, the ends of ranges that functions care about, numbers of
// every exponent, infinities and NaN.
std::vector<float> EdgeValues(uint32_t seed);

// What program number `program`, which is of `plan`, makes of `x` and `y`: the
// canonical plan's outputs, zeros behind those of fewer elements.
std::vector<std::vector<float>> OutputsOf(const HostKernels& kernels,
                                          size_t program,
                                          const CanonicalPlan& plan,
                                          std::vector<float> x,
                                          std::vector<float> y);

}  // namespace kiln

#endif  // KILN_TESTS_JIT_COMPILE_ELEMENTWISE_CASES_H_
