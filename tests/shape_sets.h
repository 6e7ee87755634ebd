#ifndef KILN_TESTS_SHAPE_SETS_H_
#define KILN_TESTS_SHAPE_SETS_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/shape_plans.h"

namespace kiln {

// Named sets of plans, over which tests that hold for every plan run:
//   tiny         every op and chain at a few elements, in f32, f16 and bf16
//   tails        extents one below and one above powers of two
//   degenerate   extents of 1, primes, scalars, ranks 0 to 3
//   strided      strides, paddings, dilations, groups and their mixtures
//   real_models  layers of known networks and the chains at full size; large,
//                so for compilers and GPUs, not for the `cpu` device
// Names are unique over all sets.
std::vector<std::string> ShapeSetNames();

// The plans of a set. The name must be one of ShapeSetNames.
std::vector<NamedPlan> PlansOfShapeSet(std::string_view set);

// Notes which sets a test program went through, so that one that none of its
// tests ran can fail.
class ShapeSetCoverage {
 public:
  void Ran(std::string_view set) { ran_.emplace(set); }
  std::vector<std::string> NeverRan() const;

 private:
  std::set<std::string> ran_;
};

}  // namespace kiln

#endif  // KILN_TESTS_SHAPE_SETS_H_
