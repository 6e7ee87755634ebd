#ifndef KILN_TESTS_PTX_CONV_PLAN_TEXT_H_
#define KILN_TESTS_PTX_CONV_PLAN_TEXT_H_

#include <string>

#include "fmt/format.h"

namespace kiln::ptx {

// A convolution `c` of tensors with these extents and attributes, and `rest`.
inline std::string Conv(const std::string& x, const std::string& w,
                        const std::string& attributes, const std::string& rest,
                        const std::string& dtype = "f32",
                        const std::string& op = "conv2d") {
  return fmt::format(
      "input x: {0}[{1}]\nparam w: {0}[{2}]\nc = {3}(x, w{4})\n{5}\n"
      "output y\n",
      dtype, x, w, op, attributes.empty() ? "" : ", " + attributes, rest);
}

inline std::string Transpose(const std::string& x, const std::string& w,
                             const std::string& attributes,
                             const std::string& rest,
                             const std::string& dtype = "f32") {
  return Conv(x, w, attributes, rest, dtype, "conv_transpose2d");
}

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_CONV_PLAN_TEXT_H_
