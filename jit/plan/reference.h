#ifndef KILN_JIT_PLAN_REFERENCE_H_
#define KILN_JIT_PLAN_REFERENCE_H_

#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/status.h"
#include "jit/plan/plan.h"

namespace kiln {

// What the values alive at one time may take together, as doubles: half of a
// common workstation's memory.
inline constexpr int64_t kReferenceMemoryBytes = int64_t{16} << 30;

// Evaluates a plan in double, element by element, by the definitions in
// PyTorch's documentation. Slow, simple, and the oracle of every kernel.
// What it computes per op, NaN and Inf included, is written in docs/ops.md.
//
// `inputs[i]` points at the contiguous elements of plan.inputs[i], in that
// input's storage type; it may be null if nothing uses that input.
// `outputs[i]` receives plan.outputs[i], rounded once to its storage type.
// Outputs must overlap nothing. `cancelled`, if given, is asked now and then
// by the calling thread; once it says true the call stops with CANCELLED and
// the outputs hold anything. Uses every core.
//
// Errors: those of ValidatePlan; RESOURCE_EXHAUSTED when the values alive at
// one time exceed `memory_limit_bytes` or cannot be allocated. Thread-safe.
absl::Status EvaluateReference(
    const Plan& plan, std::span<const void* const> inputs,
    std::span<void* const> outputs, const std::function<bool()>& cancelled = {},
    int64_t memory_limit_bytes = kReferenceMemoryBytes);

// The same with outputs left unrounded, for tests: `outputs[i]` receives
// doubles.
absl::Status EvaluateReferenceToDouble(
    const Plan& plan, std::span<const void* const> inputs,
    std::span<double* const> outputs,
    int64_t memory_limit_bytes = kReferenceMemoryBytes);

}  // namespace kiln

#endif  // KILN_JIT_PLAN_REFERENCE_H_
