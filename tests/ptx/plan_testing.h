#ifndef KILN_TESTS_PTX_PLAN_TESTING_H_
#define KILN_TESTS_PTX_PLAN_TESTING_H_

#include <functional>
#include <string>
#include <vector>

#include "tests/ptx/comparison.h"

namespace kiln::ptx {

// A plan's kernels; a failure of the test, and no programs, if it does not
// compile.
PlanKernels Compiled(const std::string& text, const std::string& target,
                     const PlanRunOptions& options = {});

// Fails the test where they do not agree with the reference, in each of `ways`
// to run them.
void ExpectAgreement(const PlanKernels& kernels, const InputOptions& inputs,
                     const std::vector<PlanRunOptions>& ways = {{}});

// With copies and warps that take turns at random, and with tensors that begin
// between accesses.
PlanRunOptions Interrupted();
PlanRunOptions OffGrid();

// Expects agreement in each of `ways`; and with an infinity and a NaN among the
// inputs in each of `ways_of_specials`.
void ExpectAgreementWithSpecials(
    const PlanKernels& kernels, InputOptions inputs,
    const std::vector<PlanRunOptions>& ways,
    const std::vector<PlanRunOptions>& ways_of_specials);

// Of the first convolution; null: there is none.
const ConvGeometry* FirstConvolution(const PlanKernels& kernels);

// Expects agreement of a plan that begins with a convolution, also with an
// infinity and a NaN among the inputs: as it is, interrupted, and off the grid.
// `check` is asked about the convolution.
void ExpectAgreementAnyway(
    const std::string& text, const std::string& target,
    const std::function<void(const ConvGeometry&)>& check);

// The same of the fastest candidate that has a kernel which `is` so, on a
// device of so many multiprocessors; a failure of the test if none has.
// Interrupted and off the grid with the infinity and the NaN alone.
void ExpectAgreementOfKind(const std::string& text, int sm_count,
                           const InputOptions& inputs,
                           const std::function<bool(const Kernel&)>& is);

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_PLAN_TESTING_H_
