#ifndef KILN_TESTS_GPU_LOADED_PLAN_H_
#define KILN_TESTS_GPU_LOADED_PLAN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/run_tensors.h"
#include "client/client.h"
#include "jit/run/cuda_device.h"
#include "jit/run/cuda_handles.h"
#include "jit/run/loaded_artifact.h"

namespace kiln::gpu {

// A plan that a daemon compiled, loaded into the current context of the
// device, with memory for its tensors there.
class LoadedPlan {
 public:
  // Errors: those of ParsePlanText, Client::Compile, LoadedArtifact::Load and
  // DeviceMemory::Allocate.
  static absl::StatusOr<std::unique_ptr<LoadedPlan>> Load(
      Client& client, const DriverTable& driver, const CudaDevice& device,
      const std::string& text);

  const CompiledPlan& compiled() const { return compiled_; }
  // Random inputs of `seed`, outputs filled with NaN.
  cli::RunTensors Tensors(uint64_t seed) const;

  // Copy on `stream` and wait. Upload poisons the outputs, and leaves
  // parameters as they are unless `with_parameters`.
  absl::Status Upload(driver::Stream stream, const cli::RunTensors& tensors,
                      bool with_parameters = true) const;
  absl::Status Download(driver::Stream stream, cli::RunTensors& tensors) const;

  absl::Status Prepare(driver::Stream stream, uint64_t parameter_version);
  absl::Status Launch(driver::Stream stream, uint64_t parameter_version);

  // Empty if every output is within the bound of `kiln run --verify` around
  // the reference in double; else what is wrong.
  std::string Complaint(const cli::RunTensors& tensors) const;

 private:
  explicit LoadedPlan(const DriverTable& driver) : driver_(driver) {}
  absl::Status Allocate();
  void Bind();

  const DriverTable& driver_;
  CompiledPlan compiled_;
  std::vector<TensorDesc> values_;
  std::unique_ptr<LoadedArtifact> loaded_;
  std::vector<DeviceMemory> inputs_, outputs_;
  DeviceMemory workspace_, prepared_;
  std::vector<driver::DevicePtr> slots_;
  LaunchAreas areas_;
};

}  // namespace kiln::gpu

#endif  // KILN_TESTS_GPU_LOADED_PLAN_H_
