#ifndef KILN_JIT_COMPILE_LAY_RESULTS_H_
#define KILN_JIT_COMPILE_LAY_RESULTS_H_

#include <map>
#include <optional>

#include "jit/compile/conv_choice.h"
#include "jit/compile/lowered_plan.h"
#include "jit/compile/schedule.h"
#include "jit/plan/plan.h"

namespace kiln {

// Between two convolutions of one tap f32 numbers go to memory, from where a
// kernel, or each block of the second convolution, makes halves of them. The
// first can leave them as such lines itself (laid_lines.cuh), if it knows the
// scale of each pixel before its results: by a bound (result_bound.h), for
// which it must take lines itself, that a kernel before has laid down, and
// weights and all that ops read must be parameters.

// Values, and the images that the convolutions that make them have
// (Node::image), which those that read them have, too.
using LaidValues = std::map<int, std::optional<Pair>>;

// Those of `schedule` that may be left so, though not all of a chain's at once:
// nobody but convolutions that could take them reads them.
LaidValues ResultsToLay(const Plan& plan, const Schedule& schedule);

// `plan` with `values` as lines.
LoweredPlan LayResults(LoweredPlan plan, const LaidValues& values);

// Whether the kernels of `schedule` leave and take all of `values` as lines,
// and suit the images.
bool AreLaid(const Schedule& schedule, const LaidValues& values);

// What the convolutions' kernels take, by the models.
double ConvolutionCycles(const Schedule& schedule, const Target& target);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_LAY_RESULTS_H_
