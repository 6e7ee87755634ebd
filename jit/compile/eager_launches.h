#ifndef KILN_JIT_COMPILE_EAGER_LAUNCHES_H_
#define KILN_JIT_COMPILE_EAGER_LAUNCHES_H_

#include <span>

#include "jit/artifact/artifact.h"
#include "jit/plan/canonical.h"

namespace kiln {

// Symbols of eager.cu in the order of a module's entries.
std::span<const char* const> EagerSymbols();

// A plan as launches of module 0, one or two for each operation. Results lie in
// the workspace in f32, or where they are put out. Slots are those of
// NewArtifact.
Variant MakeEagerLaunches(const CanonicalPlan& plan, const Target& target);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_EAGER_LAUNCHES_H_
