#ifndef KILN_TESTS_FULL_MATRIX_H_
#define KILN_TESTS_FULL_MATRIX_H_

#include <cstdlib>
#include <string>
#include <vector>

namespace kiln {

// Whether a test takes all that it has (`ctest -L full`) rather than a sample
// that fits a CI run.
inline bool IsFullMatrix() {
  return std::getenv("KILN_FULL_MATRIX") != nullptr;
}

// The grades in which to test the plan of place `turn` in its list: by turns
// one of them, and both in the full matrix.
inline std::vector<std::string> GradesInTurn(size_t turn) {
  if (IsFullMatrix()) return {"fp32", "tf32"};
  return {turn % 2 == 0 ? "fp32" : "tf32"};
}

}  // namespace kiln

#endif  // KILN_TESTS_FULL_MATRIX_H_
