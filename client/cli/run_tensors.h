#ifndef KILN_CLIENT_CLI_RUN_TENSORS_H_
#define KILN_CLIENT_CLI_RUN_TENSORS_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/plan/plan.h"

namespace kiln::cli {

// An input or output in ordinary memory, contiguous.
struct RunTensor {
  std::string name;
  TensorDesc desc;
  std::vector<char> elements;
};

// The tensors of one run, in the order of the plan. Each name stands once: a
// later one of the same has its position behind it, "y#1".
struct RunTensors {
  std::vector<RunTensor> inputs;
  std::vector<RunTensor> outputs;
};

// Makes every input, filled from `files` (name to .npy path) or at random, and
// every output, filled with NaN so that an element nobody writes is seen.
// `values` are those of ValidatePlan.
//
// Errors: INVALID_ARGUMENT: no input of that name; RESOURCE_EXHAUSTED: they do
// not fit in the machine's memory; those of ReadFile, ParseNpy.
absl::StatusOr<RunTensors> MakeTensors(
    const Plan& plan, const std::vector<TensorDesc>& values,
    const std::map<std::string, std::string>& files, uint64_t seed);

// INVALID_ARGUMENT if `files` (name to path) names an output that is none.
absl::Status CheckOutputNames(const RunTensors& tensors,
                              const std::map<std::string, std::string>& files);

// Writes the outputs named in `files` (name to path) as .npy.
//
// Errors: INVALID_ARGUMENT: no output of that name; those of WriteFile.
absl::Status SaveOutputs(const RunTensors& tensors,
                         const std::map<std::string, std::string>& files);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_RUN_TENSORS_H_
