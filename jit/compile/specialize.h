#ifndef KILN_JIT_COMPILE_SPECIALIZE_H_
#define KILN_JIT_COMPILE_SPECIALIZE_H_

#include <string>

#include "jit/compile/kernel_spec.h"

namespace kiln {

// The generated translation unit: what it computes as a comment, the include,
// `struct Spec`, and one extern "C" function for each entry. Depends on
// nothing but `spec`.
std::string WriteUnit(const KernelSpec& spec);

// `unit` with the plan's values ("i3", "v12_mean", "output0") numbered in
// order of appearance: equal for units that differ in those names alone, whose
// cubins are the same.
std::string UnitIdentity(const std::string& unit);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_SPECIALIZE_H_
