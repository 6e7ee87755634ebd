#ifndef KILN_TESTS_PTX_RANDOM_CONV_PLANS_H_
#define KILN_TESTS_PTX_RANDOM_CONV_PLANS_H_

#include <cstdint>
#include <string>

namespace kiln::ptx {

// A convolution along one axis of the image.
struct ConvAxis {
  int64_t input = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;

  int64_t reach() const { return (kernel - 1) * dilation + 1; }
  int64_t Output(bool transposed) const {
    if (transposed) return (input - 1) * stride - 2 * padding + reach();
    const int64_t positions = input + 2 * padding - reach();
    return positions < 0 ? 0 : positions / stride + 1;
  }
};

// A random plan: a convolution of few and small images, ordinary or transposed,
// ops on its elements, and behind them a norm, a pooling or a reduction, or
// several of these. Every attribute and data type of a convolution is used, and
// nothing is a multiple of what kernels would like. Equal seeds make equal
// plans, on any platform.
std::string RandomConvPlan(uint64_t seed);

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_RANDOM_CONV_PLANS_H_
