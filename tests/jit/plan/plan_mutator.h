#ifndef KILN_TESTS_JIT_PLAN_PLAN_MUTATOR_H_
#define KILN_TESTS_JIT_PLAN_PLAN_MUTATOR_H_

#include "jit/plan/plan.h"
#include "tests/jit/plan/plan_generator.h"

namespace kiln {

// Damages a plan in one random place: an extent, an enum, an operand, an
// attribute, a count, a name. The result may happen to be valid. Numbers are
// chosen near the limits of validate.h and of int64_t, where arithmetic breaks.
void MutatePlan(TestRandom* random, Plan* plan);

// An integer that arithmetic may trip over.
int64_t HostileInt(TestRandom* random);

}  // namespace kiln

#endif  // KILN_TESTS_JIT_PLAN_PLAN_MUTATOR_H_
