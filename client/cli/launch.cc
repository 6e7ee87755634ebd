#include "client/cli/launch.h"

#include <cmath>
#include <span>
#include <utility>

#include "client/cuda_memory.h"
#include "jit/run/cuda_errors.h"
#include "jit/run/cuda_handles.h"
#include "jit/run/loaded_artifact.h"
#include "proto/artifact_converter.h"

namespace kiln::cli {
namespace {

using client::CudaContext;
using client::CudaMemory;

// Device memory for all of `tensors`, filled from them. `allocate` takes a
// size and gives StatusOr<Memory>.
template <typename Memory, typename Allocate>
absl::Status CopyUp(const std::vector<RunTensor>& tensors, Allocate allocate,
                    std::vector<Memory>& memories) {
  for (const RunTensor& tensor : tensors) {
    absl::StatusOr<Memory> memory =
        allocate(static_cast<int64_t>(tensor.elements.size()));
    if (!memory.ok()) return memory.status();
    const absl::Status copied =
        memory->CopyFrom(std::as_bytes(std::span(tensor.elements)));
    if (!copied.ok()) return copied;
    memories.push_back(*std::move(memory));
  }
  return absl::OkStatus();
}

template <typename Memory>
absl::Status CopyDown(const std::vector<Memory>& memories,
                      std::vector<RunTensor>& tensors) {
  for (size_t i = 0; i < memories.size(); ++i) {
    const absl::Status copied = memories[i].CopyTo(
        std::as_writable_bytes(std::span(tensors[i].elements)));
    if (!copied.ok()) return copied;
  }
  return absl::OkStatus();
}

Bindings BindAll(const std::vector<SharedBuffer>& inputs,
                 const std::vector<SharedBuffer>& outputs) {
  Bindings bindings;
  for (size_t i = 0; i < inputs.size(); ++i) {
    bindings.Input(static_cast<int>(i), inputs[i]);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    bindings.Output(static_cast<int>(i), outputs[i]);
  }
  return bindings;
}

// Puts the address of each tensor where the artifact wants it; -1: nowhere.
void FillSlots(const std::vector<CudaMemory>& memories,
               const std::vector<int>& slot_of,
               std::vector<driver::DevicePtr>& slots) {
  for (size_t i = 0; i < memories.size() && i < slot_of.size(); ++i) {
    const int slot = slot_of[i];
    if (slot < 0 || slot >= static_cast<int>(slots.size())) continue;
    slots[slot] = memories[i].address();
  }
}

// A loaded artifact with what a launch needs. The context must be current.
class Launcher {
 public:
  static absl::StatusOr<Launcher> Make(const CudaContext& context,
                                       const Artifact& artifact);
  size_t slot_count() const { return artifact_->slots().size(); }
  // Waits for the end of the run; returns its microseconds.
  absl::StatusOr<int64_t> Run(std::span<const driver::DevicePtr> slots);

 private:
  explicit Launcher(const DriverTable& driver) : driver_(&driver) {}
  absl::Status AllocateAreas();
  absl::Status Record(const CudaEvent& event) const;

  const DriverTable* driver_;
  std::unique_ptr<LoadedArtifact> artifact_;
  CudaStream stream_;
  CudaEvent start_, end_;
  DeviceMemory workspace_, prepared_;
  LaunchAreas areas_;
};

absl::Status Launcher::AllocateAreas() {
  absl::StatusOr<DeviceMemory> workspace =
      DeviceMemory::Allocate(*driver_, artifact_->workspace_bytes());
  if (!workspace.ok()) return workspace.status();
  absl::StatusOr<DeviceMemory> prepared =
      DeviceMemory::Allocate(*driver_, artifact_->prepared_bytes());
  if (!prepared.ok()) return prepared.status();
  workspace_ = *std::move(workspace);
  prepared_ = *std::move(prepared);
  areas_.workspace = workspace_.get();
  areas_.prepared = prepared_.get();
  return absl::OkStatus();
}

absl::StatusOr<Launcher> Launcher::Make(const CudaContext& context,
                                        const Artifact& artifact) {
  Launcher launcher(context.driver());
  auto loaded =
      LoadedArtifact::Load(context.driver(), context.device(), artifact);
  if (!loaded.ok()) return loaded.status();
  launcher.artifact_ = *std::move(loaded);
  absl::StatusOr<CudaStream> stream = CreateStream(context.driver());
  if (!stream.ok()) return stream.status();
  absl::StatusOr<CudaEvent> start = CreateEvent(context.driver());
  if (!start.ok()) return start.status();
  absl::StatusOr<CudaEvent> end = CreateEvent(context.driver());
  if (!end.ok()) return end.status();
  launcher.stream_ = *std::move(stream);
  launcher.start_ = *std::move(start);
  launcher.end_ = *std::move(end);
  const absl::Status allocated = launcher.AllocateAreas();
  if (!allocated.ok()) return allocated;
  return launcher;
}

absl::Status Launcher::Record(const CudaEvent& event) const {
  return CudaStatus(driver_->EventRecord(event.get(), stream_.get()),
                    "cuEventRecord");
}

absl::StatusOr<int64_t> Launcher::Run(
    std::span<const driver::DevicePtr> slots) {
  absl::Status status = Record(start_);
  if (status.ok()) {
    status = artifact_->Launch(stream_.get(), slots, /*parameter_version=*/1,
                               areas_);
  }
  if (status.ok()) status = Record(end_);
  status.Update(CudaStatus(driver_->StreamSynchronize(stream_.get()),
                           "cuStreamSynchronize"));
  if (!status.ok()) return status;
  float milliseconds = 0;
  status = CudaStatus(
      driver_->EventElapsedTime(&milliseconds, start_.get(), end_.get()),
      "cuEventElapsedTime");
  if (!status.ok()) return status;
  return std::llround(milliseconds * 1000.0);
}

absl::StatusOr<std::vector<int64_t>> RunRepeatedly(
    const CudaContext& context, const CompiledPlan& compiled, int repeat,
    const std::vector<CudaMemory>& inputs,
    const std::vector<CudaMemory>& outputs) {
  const absl::StatusOr<Artifact> artifact = ParseArtifact(compiled.artifact);
  if (!artifact.ok()) return artifact.status();
  const CurrentContext current(context.driver(), context.get());
  if (!current.status().ok()) return current.status();
  absl::StatusOr<Launcher> launcher = Launcher::Make(context, *artifact);
  if (!launcher.ok()) return launcher.status();
  std::vector<driver::DevicePtr> slots(launcher->slot_count());
  FillSlots(inputs, compiled.slot_of_input, slots);
  FillSlots(outputs, compiled.slot_of_output, slots);

  std::vector<int64_t> times_us;
  for (int i = 0; i < repeat; ++i) {
    const absl::StatusOr<int64_t> time_us = launcher->Run(slots);
    if (!time_us.ok()) return time_us.status();
    times_us.push_back(*time_us);
  }
  return times_us;
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> LaunchInDaemon(
    Client& client, const CompiledPlan& compiled, const std::string& device,
    int repeat, RunTensors& tensors) {
  absl::StatusOr<Session> session = client.OpenSession();
  if (!session.ok()) return session.status();
  const auto allocate = [&session, &device](int64_t size_bytes) {
    return session->CreateBuffer(size_bytes, device);
  };
  std::vector<SharedBuffer> inputs;
  std::vector<SharedBuffer> outputs;
  absl::Status copied = CopyUp(tensors.inputs, allocate, inputs);
  if (copied.ok()) copied = CopyUp(tensors.outputs, allocate, outputs);
  if (!copied.ok()) return copied;

  const Bindings bindings = BindAll(inputs, outputs);
  ExecuteOptions options;
  options.device = device;
  options.parameter_version = 1;
  std::vector<int64_t> times_us;
  for (int i = 0; i < repeat; ++i) {
    const absl::StatusOr<ExecuteTiming> timing =
        session->Execute(compiled, bindings, options);
    if (!timing.ok()) return timing.status();
    times_us.push_back(timing->execute_us);
  }
  copied = CopyDown(outputs, tensors.outputs);
  if (!copied.ok()) return copied;
  return times_us;
}

absl::StatusOr<std::vector<int64_t>> LaunchHere(
    const std::shared_ptr<const CudaContext>& context,
    const CompiledPlan& compiled, int repeat, RunTensors& tensors) {
  const auto allocate = [&context](int64_t size_bytes) {
    return CudaMemory::Allocate(context, size_bytes);
  };
  std::vector<CudaMemory> inputs;
  std::vector<CudaMemory> outputs;
  absl::Status copied = CopyUp(tensors.inputs, allocate, inputs);
  if (copied.ok()) copied = CopyUp(tensors.outputs, allocate, outputs);
  if (!copied.ok()) return copied;
  const absl::StatusOr<std::vector<int64_t>> times_us =
      RunRepeatedly(*context, compiled, repeat, inputs, outputs);
  if (!times_us.ok()) return times_us.status();
  copied = CopyDown(outputs, tensors.outputs);
  if (!copied.ok()) return copied;
  return times_us;
}

}  // namespace kiln::cli
