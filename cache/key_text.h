#ifndef KILN_CACHE_KEY_TEXT_H_
#define KILN_CACHE_KEY_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// A key text is lines "field: value", then a line "plan:", after which all the
// rest is the value of the field "plan". Lines "field=value" of the plan that
// only say again what stands above it are not compared. Nothing else is known
// of it here: jit/compile writes it, docs/cache.md describes it.

struct KeyTextDifference {
  std::string field;
  std::string wanted;  // empty if the field is missing
  std::string found;

  friend bool operator==(const KeyTextDifference&,
                         const KeyTextDifference&) = default;
};

// The fields that differ, in the order of `wanted`, then those that only
// `found` has. Of "plan", which goes last, the first line that differs.
std::vector<KeyTextDifference> CompareKeyTexts(std::string_view wanted,
                                               std::string_view found);

// How far two key texts are apart: 0 if all fields are equal; the number of
// fields that differ if the plans are equal; more than that, growing with the
// number of differing plan lines, if they are not. To explain a miss, compare
// with the entry at the least distance.
int64_t KeyTextDistance(std::string_view wanted, std::string_view found);

}  // namespace kiln

#endif  // KILN_CACHE_KEY_TEXT_H_
