#ifndef KILN_JIT_PLAN_REFERENCE_H_
#define KILN_JIT_PLAN_REFERENCE_H_

#include <functional>
#include <span>

#include "absl/status/status.h"
#include "jit/plan/plan.h"

namespace kiln {

// Evaluates a plan in double, element by element, by the definitions in
// PyTorch's documentation. Slow, simple, and the oracle of every kernel.
//
// `inputs[i]` points at the contiguous elements of plan.inputs[i], in that
// input's storage type; `outputs[i]` receives plan.outputs[i], rounded once to
// its storage type. Outputs must overlap nothing. `cancelled`, if given, is
// asked now and then; once it says true the call stops with CANCELLED and the
// outputs hold anything.
//
// Errors: those of ValidatePlan; RESOURCE_EXHAUSTED when intermediates do not
// fit in memory. Thread-safe.
absl::Status EvaluateReference(const Plan& plan,
                               std::span<const void* const> inputs,
                               std::span<void* const> outputs,
                               const std::function<bool()>& cancelled = {});

// The same with outputs left unrounded, for tests: `outputs[i]` receives
// doubles.
absl::Status EvaluateReferenceToDouble(const Plan& plan,
                                       std::span<const void* const> inputs,
                                       std::span<double* const> outputs);

}  // namespace kiln

#endif  // KILN_JIT_PLAN_REFERENCE_H_
