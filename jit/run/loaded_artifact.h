#ifndef KILN_JIT_RUN_LOADED_ARTIFACT_H_
#define KILN_JIT_RUN_LOADED_ARTIFACT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/artifact/artifact.h"
#include "jit/run/cuda_device.h"
#include "jit/run/cuda_handles.h"
#include "jit/run/loaded_kernel.h"

namespace kiln {

// Memory that one launch at a time uses beside its slots, and what is known of
// its contents. The caller allocates `workspace_bytes()` and
// `prepared_bytes()` of it, aligned to 256 bytes; addresses may be 0 where the
// size is. A value that Launch updates; start a new one for new memory.
struct LaunchAreas {
  driver::DevicePtr workspace = 0;
  driver::DevicePtr prepared = 0;

  // Written by Launch and Prepare.
  bool zeroed_once = false;
  bool is_prepared = false;
  uint64_t parameter_version = 0;
  // Addresses that it was prepared from.
  std::vector<driver::DevicePtr> parameters = {};
};

// An artifact on a device: code loaded, variant chosen, arguments checked.
// Immutable, so any number of threads may launch it, each with areas of its
// own. The driver table must outlive it; so must the context, which has to be
// current whenever a member function is called.
//
//   auto loaded = LoadedArtifact::Load(driver, device, artifact);
//   LaunchAreas areas{.workspace = ..., .prepared = ...};
//   loaded->Launch(stream, slots, /*parameter_version=*/1, areas);
class LoadedArtifact {
 public:
  // Uses the first variant whose requirements hold.
  //
  // Errors: FAILED_PRECONDITION if the artifact is for another target;
  // INVALID_ARGUMENT if its launch record contradicts itself or its kernels.
  static absl::StatusOr<std::unique_ptr<LoadedArtifact>> Load(
      const DriverTable& driver, const CudaDevice& device,
      const Artifact& artifact);

  int64_t workspace_bytes() const { return variant_.workspace_bytes; }
  int64_t prepared_bytes() const { return variant_.prepared_bytes; }
  // Whether the kernels keep state in the workspace between launches, which
  // then must not be lent to another artifact.
  bool keeps_workspace() const;
  int variant_index() const { return variant_index_; }
  const std::vector<Slot>& slots() const { return slots_; }

  // Whether Launch takes these addresses; its errors for them.
  absl::Status CheckAddresses(std::span<const driver::DevicePtr> slots) const;

  // Enqueues everything that one run needs on `stream` and returns without
  // waiting: memsets of zero areas, prepare steps if they are due, then the
  // launch steps. Allocates no device memory and may be captured into a graph.
  //
  // `slots` holds one address per slot. An output must not overlap any other,
  // for values may lie in it before it is written.
  // Parameters are prepared again if their addresses or `parameter_version`
  // changed since `areas` was last prepared, and every time for version 0.
  // During a capture `areas` is left unchanged: call Prepare before it, or each
  // replay prepares again.
  //
  // Errors: INVALID_ARGUMENT for a missing, null or misaligned address, and for
  // an output that overlaps anything. After any other error `areas` counts as
  // not zeroed and not prepared.
  absl::Status Launch(driver::Stream stream,
                      std::span<const driver::DevicePtr> slots,
                      uint64_t parameter_version, LaunchAreas& areas) const;

  // The part of Launch that need not be repeated: zero-once areas and prepare
  // steps. Only parameter slots are read; other addresses may be 0.
  absl::Status Prepare(driver::Stream stream,
                       std::span<const driver::DevicePtr> slots,
                       uint64_t parameter_version, LaunchAreas& areas) const;

 private:
  // (module, entry)
  using KernelIndex = std::pair<int, int>;

  LoadedArtifact(const DriverTable& driver, const CudaDevice& device,
                 const Artifact& artifact);

  absl::Status LoadStepKernel(const Artifact& artifact, const Step& step);
  absl::StatusOr<bool> TryVariant(const Artifact& artifact,
                                  const Variant& variant);
  absl::Status CheckSlots(std::span<const driver::DevicePtr> slots,
                          bool parameters_only) const;
  absl::Status Zero(driver::Stream stream, ZeroWhen when,
                    const LaunchAreas& areas) const;
  absl::Status RunSteps(driver::Stream stream, const std::vector<Step>& steps,
                        std::span<const driver::DevicePtr> slots,
                        const LaunchAreas& areas) const;
  absl::Status ZeroOnceAndPrepare(driver::Stream stream,
                                  std::span<const driver::DevicePtr> slots,
                                  uint64_t parameter_version,
                                  LaunchAreas& areas) const;

  const DriverTable& driver_;
  const CudaDevice device_;
  std::vector<Slot> slots_;
  std::map<int, CudaLibrary> libraries_;  // by module
  std::map<KernelIndex, LoadedKernel> kernels_;
  Variant variant_;
  int variant_index_ = 0;
};

}  // namespace kiln

#endif  // KILN_JIT_RUN_LOADED_ARTIFACT_H_
