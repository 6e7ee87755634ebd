#ifndef KILN_TESTS_PTX_RANDOM_CONV_PLANS_H_
#define KILN_TESTS_PTX_RANDOM_CONV_PLANS_H_

#include <cstdint>
#include <string>

namespace kiln::ptx {

// A random plan: a convolution of few and small images, ordinary or transposed,
// ops on its elements, and behind them a norm, a pooling or a reduction, or
// several of these. Every attribute and data type of a convolution is used, and
// nothing is a multiple of what kernels would like. Equal seeds make equal
// plans, on any platform.
std::string RandomConvPlan(uint64_t seed);

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_RANDOM_CONV_PLANS_H_
