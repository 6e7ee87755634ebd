#include "tests/gpu/loaded_plan.h"

#include <fmt/format.h>

#include <utility>

#include "client/cli/verification.h"
#include "jit/plan/plan_text.h"
#include "jit/plan/reference.h"
#include "jit/plan/reference_convert.h"
#include "jit/plan/validate.h"
#include "jit/run/cuda_errors.h"
#include "proto/artifact_converter.h"

namespace kiln::gpu {
namespace {

absl::Status AllocateAll(const DriverTable& driver,
                         const std::vector<cli::RunTensor>& tensors,
                         std::vector<DeviceMemory>& memories) {
  for (const cli::RunTensor& tensor : tensors) {
    absl::StatusOr<DeviceMemory> memory = DeviceMemory::Allocate(
        driver, static_cast<int64_t>(tensor.elements.size()));
    if (!memory.ok()) return memory.status();
    memories.push_back(*std::move(memory));
  }
  return absl::OkStatus();
}

std::string ComplaintOf(const cli::RunTensor& output,
                        const std::vector<double>& wanted,
                        const cli::Bound& bound) {
  std::vector<double> got(wanted.size());
  ElementsToDouble(output.desc.dtype, output.elements.data(),
                   static_cast<int64_t>(got.size()), got.data());
  const cli::Deviation deviation = cli::Compare(output.desc.dtype, got, wanted);
  if (bound.Holds(deviation)) return "";
  return fmt::format(
      "{}: relative norm {:.3g} (bound {:.3g}), element {} is {} instead of "
      "{}, {} differ in being finite. ",
      output.name, deviation.relative_norm, bound.relative_norm,
      deviation.max_at, deviation.got, deviation.wanted,
      deviation.unequal_special);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedPlan>> LoadedPlan::Load(
    Client& client, const DriverTable& driver, const CudaDevice& device,
    const std::string& text) {
  const absl::StatusOr<Plan> plan = ParsePlanText(text);
  if (!plan.ok()) return plan.status();
  auto values = ValidatePlan(*plan);
  if (!values.ok()) return values.status();
  CompileOptions options;
  options.target = ToString(device.target);
  options.include_artifact = true;
  absl::StatusOr<CompiledPlan> compiled = client.Compile(*plan, options);
  if (!compiled.ok()) return compiled.status();
  const absl::StatusOr<Artifact> artifact = ParseArtifact(compiled->artifact);
  if (!artifact.ok()) return artifact.status();
  auto loaded = LoadedArtifact::Load(driver, device, *artifact);
  if (!loaded.ok()) return loaded.status();

  std::unique_ptr<LoadedPlan> result(new LoadedPlan(driver));
  result->compiled_ = *std::move(compiled);
  result->values_ = *std::move(values);
  result->loaded_ = *std::move(loaded);
  const absl::Status allocated = result->Allocate();
  if (!allocated.ok()) return allocated;
  result->Bind();
  return result;
}

absl::Status LoadedPlan::Allocate() {
  const cli::RunTensors tensors = Tensors(0);
  absl::Status status = AllocateAll(driver_, tensors.inputs, inputs_);
  status.Update(AllocateAll(driver_, tensors.outputs, outputs_));
  auto workspace = DeviceMemory::Allocate(driver_, loaded_->workspace_bytes());
  auto prepared = DeviceMemory::Allocate(driver_, loaded_->prepared_bytes());
  status.Update(workspace.status());
  status.Update(prepared.status());
  if (!status.ok()) return status;
  workspace_ = *std::move(workspace);
  prepared_ = *std::move(prepared);
  areas_.workspace = workspace_.get();
  areas_.prepared = prepared_.get();
  return status;
}

void LoadedPlan::Bind() {
  slots_.resize(loaded_->slots().size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const int slot = compiled_.slot_of_input[i];
    if (slot >= 0) slots_[slot] = inputs_[i].get();
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    slots_[compiled_.slot_of_output[i]] = outputs_[i].get();
  }
}

cli::RunTensors LoadedPlan::Tensors(uint64_t seed) const {
  return *cli::MakeTensors(compiled_.plan, values_, {}, seed);
}

absl::Status LoadedPlan::Upload(driver::Stream stream,
                                const cli::RunTensors& tensors,
                                bool with_parameters) const {
  absl::Status status;
  const auto copy = [&](const DeviceMemory& to, const cli::RunTensor& from) {
    status.Update(
        CudaStatus(driver_.MemcpyHtoDAsync(to.get(), from.elements.data(),
                                           from.elements.size(), stream),
                   "cuMemcpyHtoDAsync"));
  };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const bool is_parameter =
        compiled_.plan.inputs[i].role == InputRole::kParameter;
    if (with_parameters || !is_parameter) copy(inputs_[i], tensors.inputs[i]);
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    copy(outputs_[i], tensors.outputs[i]);
  }
  status.Update(
      CudaStatus(driver_.StreamSynchronize(stream), "cuStreamSynchronize"));
  return status;
}

absl::Status LoadedPlan::Download(driver::Stream stream,
                                  cli::RunTensors& tensors) const {
  absl::Status status;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    std::vector<char>& to = tensors.outputs[i].elements;
    status.Update(
        CudaStatus(driver_.MemcpyDtoHAsync(to.data(), outputs_[i].get(),
                                           to.size(), stream),
                   "cuMemcpyDtoHAsync"));
  }
  status.Update(
      CudaStatus(driver_.StreamSynchronize(stream), "cuStreamSynchronize"));
  return status;
}

absl::Status LoadedPlan::Prepare(driver::Stream stream,
                                 uint64_t parameter_version) {
  return loaded_->Prepare(stream, slots_, parameter_version, areas_);
}

absl::Status LoadedPlan::Launch(driver::Stream stream,
                                uint64_t parameter_version) {
  return loaded_->Launch(stream, slots_, parameter_version, areas_);
}

std::string LoadedPlan::Complaint(const cli::RunTensors& tensors) const {
  std::vector<const void*> inputs;
  for (const cli::RunTensor& input : tensors.inputs) {
    inputs.push_back(input.elements.data());
  }
  std::vector<std::vector<double>> wanted;
  std::vector<double*> wanted_data;
  for (const cli::RunTensor& output : tensors.outputs) {
    wanted.emplace_back(NumElements(output.desc.dims));
    wanted_data.push_back(wanted.back().data());
  }
  const absl::Status evaluated =
      EvaluateReferenceToDouble(compiled_.plan, inputs, wanted_data);
  if (!evaluated.ok()) return evaluated.ToString();
  std::string complaint;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const cli::RunTensor& output = tensors.outputs[i];
    complaint += ComplaintOf(
        output, wanted[i],
        cli::BoundOf(compiled_.plan, values_, output.desc.dtype, false));
  }
  return complaint;
}

}  // namespace kiln::gpu
