#ifndef KILN_JIT_COMPILE_CONV_SUPPLIERS_H_
#define KILN_JIT_COMPILE_CONV_SUPPLIERS_H_

#include "jit/compile/schedule.h"
#include "jit/plan/canonical.h"

namespace kiln {

// Adds the kernels that convolutions of `schedule` need: before a convolution's
// first kernel the one that packs its weights, and another before the first one
// that reads them otherwise; before one whose results are laid down the one
// that bounds these; before the first that takes lines of some input the one
// that lays these down; and before the first linear layer that reads parts of
// an operand the one that splits it, unless the layer that makes it does.
void AddSuppliers(const CanonicalPlan& plan, Schedule* schedule);

// The kernel that packs the weights that `reader` reads, or null.
const Kernel* PackerOf(const Schedule& schedule, const Kernel& reader);
// The one that lays down what a convolution reads, or null.
const Kernel* LayerOf(const Schedule& schedule, const Kernel& reader);
// The one that leaves what a linear layer reads instead of an operand, or null.
const Kernel* SplitterOf(const Schedule& schedule, const Kernel& reader,
                         int operand);
// The one that bounds what a convolution leaves as lines, for that kernel and
// the one that lays its input down; else null.
const Kernel* BounderOf(const Schedule& schedule, const Kernel& kernel);

// The value that a convolution's kernel reads beside its weights.
int InputOf(const Schedule& schedule, const Kernel& conv);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_SUPPLIERS_H_
