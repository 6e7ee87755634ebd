#ifndef KILN_TESTS_PTX_INTEGER_FUNCTIONS_H_
#define KILN_TESTS_PTX_INTEGER_FUNCTIONS_H_

#include <algorithm>
#include <cstdint>

namespace kiln::ptx {

// What integer instructions compute of two values, lane by lane or over the
// lanes of a warp. Sums wrap around.
struct Add {
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
};
struct Minimum {
  template <typename T>
  static T Apply(T a, T b) {
    return std::min(a, b);
  }
};
struct Maximum {
  template <typename T>
  static T Apply(T a, T b) {
    return std::max(a, b);
  }
};
struct And {
  template <typename T>
  static T Apply(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <typename T>
  static T Apply(T a, T b) {
    return a | b;
  }
};

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_INTEGER_FUNCTIONS_H_
