#ifndef KILN_CLIENT_CLI_RANDOM_TENSOR_H_
#define KILN_CLIENT_CLI_RANDOM_TENSOR_H_

#include <cstdint>

#include "jit/plan/plan.h"

namespace kiln::cli {

// Fills `elements` (contiguous, of plan.inputs[input]) with values of the
// standard normal distribution, the same on every machine for one seed. Inputs
// that a batch_norm takes as running_var are made positive, |x| + 0.5.
// Weights of convolutions are scaled by 1/sqrt(terms per output), so that
// outputs are of order 1.
void FillRandom(const Plan& plan, int input, uint64_t seed, void* elements);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_RANDOM_TENSOR_H_
