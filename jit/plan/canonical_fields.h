#ifndef KILN_JIT_PLAN_CANONICAL_FIELDS_H_
#define KILN_JIT_PLAN_CANONICAL_FIELDS_H_

#include <string>
#include <string_view>

#include "jit/plan/op.h"

namespace kiln {

// The fields of one op as they stand in key text, "<prefix><field>=<value>"
// a line: kind, operands, every attribute, no name. Two ops have equal text
// if and only if they are equal, floats compared by bit pattern. Changing
// what this writes changes every cache key.
std::string CanonicalOpFields(const Op& op, std::string_view prefix);

}  // namespace kiln

#endif  // KILN_JIT_PLAN_CANONICAL_FIELDS_H_
