#ifndef KILN_JIT_COMPILE_SPECIALIZE_H_
#define KILN_JIT_COMPILE_SPECIALIZE_H_

#include <string>

#include "jit/compile/kernel_spec.h"

namespace kiln {

// The generated translation unit: what it computes as a comment, the include,
// `struct Spec`, and one extern "C" function for each entry. Depends on
// nothing but `spec`.
std::string WriteUnit(const KernelSpec& spec);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_SPECIALIZE_H_
