#ifndef KILN_JIT_COMPILE_ELEMENT_INDEX_H_
#define KILN_JIT_COMPILE_ELEMENT_INDEX_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "jit/compile/lowered_plan.h"

namespace kiln {

// Expressions of where an element lies, by coordinates of a kiln::Point `at`.

// Position of the element at `at` in a tensor broadcast over `domain`.
std::string IndexOf(const Dims4& dims, const Dims4& domain);

// The coordinate along an axis of a tensor of this rank; 1 counts channels.
std::string_view AxisOf(size_t rank, size_t axis);

// Whether what is read at `index`, not empty, is the same for all pixels of a
// channel.
bool IsOfChannel(const std::string& index);
// Whether it runs with w, so that neighbours in a row are neighbours there.
bool RunsWithW(const std::string& index);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_ELEMENT_INDEX_H_
