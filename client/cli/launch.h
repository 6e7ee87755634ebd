#ifndef KILN_CLIENT_CLI_LAUNCH_H_
#define KILN_CLIENT_CLI_LAUNCH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/run_tensors.h"
#include "client/client.h"
#include "client/cuda_context.h"

namespace kiln::cli {

// Both copy all tensors to memory of the device, run `compiled` there `repeat`
// times and copy the outputs back. They return the device's microseconds of
// each run.

// In the daemon, on buffers shared with it.
//
// Errors: those of Client::OpenSession, Session::CreateBuffer and Execute.
absl::StatusOr<std::vector<int64_t>> LaunchInDaemon(
    Client& client, const CompiledPlan& compiled, const std::string& device,
    int repeat, RunTensors& tensors);

// In this process, from `compiled.artifact`.
//
// Errors: those of ParseArtifact, LoadedArtifact and CudaStatus.
absl::StatusOr<std::vector<int64_t>> LaunchHere(
    const std::shared_ptr<const client::CudaContext>& context,
    const CompiledPlan& compiled, int repeat, RunTensors& tensors);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_LAUNCH_H_
