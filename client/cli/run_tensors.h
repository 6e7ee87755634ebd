#ifndef KILN_CLIENT_CLI_RUN_TENSORS_H_
#define KILN_CLIENT_CLI_RUN_TENSORS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/session.h"
#include "jit/plan/plan.h"

namespace kiln::cli {

// The tensors of one run, in memory that the daemon shares. `values` are
// those of ValidatePlan.
struct RunTensors {
  std::vector<SharedBuffer> inputs;
  std::vector<SharedBuffer> outputs;
  std::vector<TensorDesc> output_descs;
  std::vector<std::string> output_names;
};

// The place of `name` among `names`.
//
// Errors: INVALID_ARGUMENT listing the names.
absl::StatusOr<int> FindName(const std::vector<std::string>& names,
                             const std::string& name, std::string_view what);

// Makes a buffer for every input, filled from `files` (name to .npy path) or
// at random, and one for every output, filled with NaN so that an element
// nobody writes is seen.
//
// Errors: those of Session::CreateBuffer, ReadFile, ParseNpy.
absl::StatusOr<RunTensors> MakeTensors(
    Session& session, const Plan& plan, const std::vector<TensorDesc>& values,
    const std::map<std::string, std::string>& files, uint64_t seed);

Bindings BindAll(const RunTensors& tensors);

// Writes the outputs named in `files` (name to path) as .npy.
absl::Status SaveOutputs(const RunTensors& tensors,
                         const std::map<std::string, std::string>& files);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_RUN_TENSORS_H_
