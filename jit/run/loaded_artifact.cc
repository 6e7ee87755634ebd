#include "jit/run/loaded_artifact.h"

#include <fmt/format.h>

#include <algorithm>

#include "jit/run/cuda_errors.h"
#include "jit/run/kernel_arguments.h"
#include "jit/run/launch_record.h"

namespace kiln {
namespace {

bool HoldsStatically(const Requirements& requires_, const CudaDevice& device) {
  return requires_.min_sm_count <= device.target.sm_count &&
         requires_.shared_optin_bytes <= device.shared_optin_bytes &&
         (!requires_.cooperative || device.cooperative_launch) &&
         (requires_.cluster_size <= 1 || device.cluster_launch);
}

std::vector<const Step*> AllSteps(const Variant& variant) {
  std::vector<const Step*> steps;
  for (const Step& step : variant.prepare) steps.push_back(&step);
  for (const Step& step : variant.launch) steps.push_back(&step);
  return steps;
}

bool Overlap(driver::DevicePtr a, int64_t a_bytes, driver::DevicePtr b,
             int64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

// Values may lie in an output before it is written.
absl::Status CheckOutputs(const std::vector<Slot>& slots,
                          std::span<const driver::DevicePtr> addresses) {
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].role != SlotRole::kOutput) continue;
    for (size_t k = 0; k < slots.size(); ++k) {
      if (k == i || !Overlap(addresses[i], slots[i].min_bytes, addresses[k],
                             slots[k].min_bytes)) {
        continue;
      }
      return absl::InvalidArgumentError(
          fmt::format("Slot {} is an output and overlaps slot {}.", i, k));
    }
  }
  return absl::OkStatus();
}

std::vector<driver::DevicePtr> ParameterAddresses(
    const Variant& variant, std::span<const driver::DevicePtr> slots) {
  std::vector<driver::DevicePtr> addresses;
  for (int slot : variant.prepared_from) addresses.push_back(slots[slot]);
  return addresses;
}

}  // namespace

LoadedArtifact::LoadedArtifact(const DriverTable& driver,
                               const CudaDevice& device,
                               const Artifact& artifact)
    : driver_(driver), device_(device), slots_(artifact.slots) {}

absl::StatusOr<std::unique_ptr<LoadedArtifact>> LoadedArtifact::Load(
    const DriverTable& driver, const CudaDevice& device,
    const Artifact& artifact) {
  if (artifact.target != device.target) {
    return absl::FailedPreconditionError(fmt::format(
        "The artifact is for another target ({}; the device is {}).",
        ToString(artifact.target), ToString(device.target)));
  }
  absl::Status status = CheckLaunchRecord(artifact);
  if (!status.ok()) return status;

  std::unique_ptr<LoadedArtifact> loaded(
      new LoadedArtifact(driver, device, artifact));
  for (size_t i = 0; i < artifact.variants.size(); ++i) {
    absl::StatusOr<bool> fits =
        loaded->TryVariant(artifact, artifact.variants[i]);
    if (!fits.ok()) return fits.status();
    if (!*fits) continue;
    loaded->variant_ = artifact.variants[i];
    loaded->variant_index_ = static_cast<int>(i);
    return loaded;
  }
  return absl::FailedPreconditionError(
      fmt::format("No variant of the artifact fits on {} (of {}).", device.name,
                  artifact.variants.size()));
}

absl::Status LoadedArtifact::LoadStepKernel(const Artifact& artifact,
                                            const Step& step) {
  const KernelIndex index(step.module, step.entry);
  if (kernels_.count(index) > 0) return absl::OkStatus();
  const Module& module = artifact.modules[step.module];
  if (libraries_.count(step.module) == 0) {
    absl::StatusOr<CudaLibrary> library = LoadLibrary(driver_, module.cubin);
    if (!library.ok()) return library.status();
    libraries_[step.module] = *std::move(library);
  }
  absl::StatusOr<LoadedKernel> kernel =
      LoadKernel(driver_, device_, libraries_[step.module].get(),
                 module.entries[step.entry]);
  if (!kernel.ok()) return kernel.status();
  kernels_[index] = *kernel;
  return absl::OkStatus();
}

absl::StatusOr<bool> LoadedArtifact::TryVariant(const Artifact& artifact,
                                                const Variant& variant) {
  if (!HoldsStatically(variant.requires_, device_)) return false;
  for (const Step* step : AllSteps(variant)) {
    absl::Status status = LoadStepKernel(artifact, *step);
    if (!status.ok()) return status;
    const LoadedKernel& kernel = kernels_[{step->module, step->entry}];
    status = CheckParameters(driver_, kernel, *step);
    if (!status.ok()) return status;
    if (step->nonportable_cluster) {
      status = CudaStatus(
          driver_.KernelSetAttribute(driver::kNonPortableClusterSizeAllowed, 1,
                                     kernel.kernel, device_.handle),
          "cuKernelSetAttribute");
      if (!status.ok()) return status;
    }
    absl::StatusOr<bool> fits = FitsOnDevice(driver_, device_, kernel, *step);
    if (!fits.ok() || !*fits) return fits;
  }
  return true;
}

bool LoadedArtifact::keeps_workspace() const {
  return std::any_of(
      variant_.zero.begin(), variant_.zero.end(), [](const ZeroRange& range) {
        return range.area == Area::kWorkspace && range.when == ZeroWhen::kOnce;
      });
}

absl::Status LoadedArtifact::CheckSlots(
    std::span<const driver::DevicePtr> slots, bool parameters_only) const {
  if (slots.size() != slots_.size()) {
    return absl::InvalidArgumentError(
        fmt::format("The number of slots is wrong ({} given, {} needed).",
                    slots.size(), slots_.size()));
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    if (parameters_only && slots_[i].role != SlotRole::kParameter) continue;
    const int64_t align = std::max<int64_t>(slots_[i].align, 1);
    if (slots[i] == 0 || slots[i] % align != 0) {
      return absl::InvalidArgumentError(fmt::format(
          "The address of slot {} is null or misaligned ({:#x}, alignment {}).",
          i, slots[i], align));
    }
  }
  return absl::OkStatus();
}

absl::Status LoadedArtifact::Zero(driver::Stream stream, ZeroWhen when,
                                  const LaunchAreas& areas) const {
  for (const ZeroRange& range : variant_.zero) {
    if (range.when != when || range.size_bytes == 0) continue;
    const driver::DevicePtr area =
        range.area == Area::kWorkspace ? areas.workspace : areas.prepared;
    absl::Status status =
        CudaStatus(driver_.MemsetD8Async(area + range.offset_bytes, 0,
                                         range.size_bytes, stream),
                   "cuMemsetD8Async");
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status LoadedArtifact::RunSteps(driver::Stream stream,
                                      const std::vector<Step>& steps,
                                      std::span<const driver::DevicePtr> slots,
                                      const LaunchAreas& areas) const {
  KernelArguments arguments;
  for (const Step& step : steps) {
    absl::Status status =
        arguments.Fill(driver_, step, {slots, areas.workspace, areas.prepared});
    if (!status.ok()) return status;
    const StepConfig config(step, device_, stream);
    const LoadedKernel& kernel = kernels_.at({step.module, step.entry});
    status = CudaStatus(driver_.LaunchKernelEx(config.get(), kernel.function,
                                               arguments.get(), nullptr),
                        "cuLaunchKernelEx");
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status LoadedArtifact::ZeroOnceAndPrepare(
    driver::Stream stream, std::span<const driver::DevicePtr> slots,
    uint64_t parameter_version, LaunchAreas& areas) const {
  std::vector<driver::DevicePtr> parameters =
      ParameterAddresses(variant_, slots);
  const bool prepare = !variant_.prepare.empty() &&
                       (!areas.is_prepared || parameter_version == 0 ||
                        parameter_version != areas.parameter_version ||
                        parameters != areas.parameters);
  if (areas.zeroed_once && !prepare) return absl::OkStatus();

  driver::CaptureStatus capture = driver::kNotCapturing;
  absl::Status status = CudaStatus(driver_.StreamIsCapturing(stream, &capture),
                                   "cuStreamIsCapturing");
  if (!status.ok()) return status;
  if (!areas.zeroed_once) {
    status = Zero(stream, ZeroWhen::kOnce, areas);
    if (!status.ok()) return status;
  }
  if (prepare) {
    status = RunSteps(stream, variant_.prepare, slots, areas);
    if (!status.ok()) return status;
  }
  // What was only recorded has not happened.
  if (capture != driver::kNotCapturing) return absl::OkStatus();
  areas.zeroed_once = true;
  areas.is_prepared = true;
  areas.parameter_version = parameter_version;
  areas.parameters = std::move(parameters);
  return absl::OkStatus();
}

absl::Status LoadedArtifact::Prepare(driver::Stream stream,
                                     std::span<const driver::DevicePtr> slots,
                                     uint64_t parameter_version,
                                     LaunchAreas& areas) const {
  absl::Status status = CheckSlots(slots, /*parameters_only=*/true);
  if (!status.ok()) return status;
  status = ZeroOnceAndPrepare(stream, slots, parameter_version, areas);
  if (!status.ok()) areas.zeroed_once = areas.is_prepared = false;
  return status;
}

absl::Status LoadedArtifact::CheckAddresses(
    std::span<const driver::DevicePtr> slots) const {
  absl::Status status = CheckSlots(slots, /*parameters_only=*/false);
  return status.ok() ? CheckOutputs(slots_, slots) : status;
}

absl::Status LoadedArtifact::Launch(driver::Stream stream,
                                    std::span<const driver::DevicePtr> slots,
                                    uint64_t parameter_version,
                                    LaunchAreas& areas) const {
  absl::Status status = CheckAddresses(slots);
  if (!status.ok()) return status;
  status = ZeroOnceAndPrepare(stream, slots, parameter_version, areas);
  if (status.ok()) status = Zero(stream, ZeroWhen::kEachLaunch, areas);
  if (status.ok()) status = RunSteps(stream, variant_.launch, slots, areas);
  if (!status.ok()) areas.zeroed_once = areas.is_prepared = false;
  return status;
}

}  // namespace kiln
