#include "server/cuda_backend.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "jit/run/cuda_device.h"
#include "jit/run/cuda_errors.h"
#include "jit/run/cuda_handles.h"
#include "jit/run/driver_table.h"
#include "jit/run/loaded_artifact.h"
#include "server/cuda_arena.h"
#include "server/cuda_memory_table.h"
#include "server/slot_addresses.h"

namespace kiln {
namespace {

class CudaBackend : public ExecutionBackend {
 public:
  // Stream and events of the one job that runs at a time.
  struct Timeline {
    CudaStream stream;
    CudaEvent start;
    CudaEvent end;
  };

  CudaBackend(int ordinal, const CudaBackendOptions& options,
              std::unique_ptr<const DriverTable> driver, CudaDevice device,
              PrimaryContext context)
      : ordinal_(ordinal),
        options_(options),
        driver_(std::move(driver)),
        device_(std::move(device)),
        context_(std::move(context)),
        current_(*driver_, context_.get()),
        memory_(*driver_) {}

  absl::Status Start();

  DeviceDescription Describe() const override;
  absl::StatusOr<OpenedMemory> Open(MemorySource source) override;
  void Close(uint64_t memory) override { memory_.Close(memory); }
  absl::StatusOr<int64_t> Execute(const Artifact& artifact,
                                  const ExecuteJob& job) override;
  void EndSession(const std::string& session) override {
    arenas_.erase(session);
  }
  bool poisoned() const override { return poisoned_; }

 private:
  struct Loaded {
    std::unique_ptr<LoadedArtifact> artifact;
    uint64_t last_use = 0;
  };

  absl::StatusOr<const LoadedArtifact*> Load(const Artifact& artifact);
  absl::StatusOr<int64_t> TryExecute(const Artifact& artifact,
                                     const ExecuteJob& job);
  absl::StatusOr<int64_t> Run(const LoadedArtifact& artifact,
                              const std::vector<driver::DevicePtr>& slots,
                              uint64_t parameter_version, LaunchAreas& areas);
  absl::Status Note(absl::Status status);

  const int ordinal_;
  const CudaBackendOptions options_;
  const std::unique_ptr<const DriverTable> driver_;
  const CudaDevice device_;
  // From here on destroyed in reverse order, with the context still current.
  PrimaryContext context_;
  CurrentContext current_;
  Timeline timeline_;
  CudaMemoryTable memory_;
  std::map<std::string, Loaded> loaded_;     // by key
  std::map<std::string, CudaArena> arenas_;  // by session
  uint64_t uses_ = 0;
  bool poisoned_ = false;
};

absl::Status CudaBackend::Start() {
  if (!current_.status().ok()) return current_.status();
  absl::StatusOr<CudaStream> stream = CreateStream(*driver_);
  if (!stream.ok()) return stream.status();
  absl::StatusOr<CudaEvent> start = CreateEvent(*driver_);
  if (!start.ok()) return start.status();
  absl::StatusOr<CudaEvent> end = CreateEvent(*driver_);
  if (!end.ok()) return end.status();
  timeline_ = {*std::move(stream), *std::move(start), *std::move(end)};
  return absl::OkStatus();
}

absl::Status CudaBackend::Note(absl::Status status) {
  if (IsFatal(status)) poisoned_ = true;
  return status;
}

DeviceDescription CudaBackend::Describe() const {
  return {fmt::format("cuda:{}", ordinal_), device_.name, device_.uuid,
          device_.target, device_.memory_bytes};
}

absl::StatusOr<OpenedMemory> CudaBackend::Open(MemorySource source) {
  const auto* handle = std::get_if<MemoryIpcHandle>(&source);
  if (handle == nullptr) {
    return absl::InvalidArgumentError(fmt::format(
        "cuda:{} takes memory by CUDA IPC handle, not by descriptor.",
        ordinal_));
  }
  absl::StatusOr<OpenedMemory> opened = memory_.Open(handle->bytes);
  if (!opened.ok()) return Note(opened.status());
  return opened;
}

absl::StatusOr<const LoadedArtifact*> CudaBackend::Load(
    const Artifact& artifact) {
  Loaded& loaded = loaded_[artifact.key];
  loaded.last_use = ++uses_;
  if (loaded.artifact != nullptr) return loaded.artifact.get();
  absl::StatusOr<std::unique_ptr<LoadedArtifact>> fresh =
      LoadedArtifact::Load(*driver_, device_, artifact);
  if (!fresh.ok()) {
    loaded_.erase(artifact.key);
    return fresh.status();
  }
  loaded.artifact = *std::move(fresh);
  if (loaded_.size() > options_.loaded_limit) {
    auto oldest = loaded_.begin();
    for (auto it = loaded_.begin(); it != loaded_.end(); ++it) {
      if (it->second.last_use < oldest->second.last_use) oldest = it;
    }
    loaded_.erase(oldest);
  }
  return loaded.artifact.get();
}

absl::StatusOr<int64_t> CudaBackend::Run(
    const LoadedArtifact& artifact, const std::vector<driver::DevicePtr>& slots,
    uint64_t parameter_version, LaunchAreas& areas) {
  const driver::Stream stream = timeline_.stream.get();
  absl::Status status = CudaStatus(
      driver_->EventRecord(timeline_.start.get(), stream), "cuEventRecord");
  if (status.ok()) {
    status = artifact.Launch(stream, slots, parameter_version, areas);
  }
  if (status.ok()) {
    status = CudaStatus(driver_->EventRecord(timeline_.end.get(), stream),
                        "cuEventRecord");
  }
  // Also after a failure: nothing may be left running on the client's memory.
  status.Update(
      CudaStatus(driver_->StreamSynchronize(stream), "cuStreamSynchronize"));
  float milliseconds = 0;
  if (status.ok()) {
    status = CudaStatus(
        driver_->EventElapsedTime(&milliseconds, timeline_.start.get(),
                                  timeline_.end.get()),
        "cuEventElapsedTime");
  }
  if (!status.ok()) {
    areas.zeroed_once = areas.is_prepared = false;
    return status;
  }
  return std::llround(milliseconds * 1000.0);
}

absl::StatusOr<int64_t> CudaBackend::TryExecute(const Artifact& artifact,
                                                const ExecuteJob& job) {
  absl::StatusOr<const LoadedArtifact*> loaded = Load(artifact);
  if (!loaded.ok()) return loaded.status();
  absl::StatusOr<std::vector<driver::DevicePtr>> slots =
      SlotAddresses(memory_, (*loaded)->slots(), job.slots);
  if (!slots.ok()) return slots.status();
  // Before memory is taken for it.
  absl::Status status = (*loaded)->CheckAddresses(*slots);
  if (!status.ok()) return status;
  CudaArena& arena =
      arenas_.try_emplace(job.session, *driver_, options_.arena_limit_bytes)
          .first->second;
  absl::StatusOr<LaunchAreas*> areas = arena.Reserve(artifact.key, **loaded);
  if (!areas.ok()) return areas.status();
  return Run(**loaded, *slots, job.parameter_version, **areas);
}

absl::StatusOr<int64_t> CudaBackend::Execute(const Artifact& artifact,
                                             const ExecuteJob& job) {
  absl::StatusOr<int64_t> microseconds = TryExecute(artifact, job);
  if (!microseconds.ok()) return Note(microseconds.status());
  return microseconds;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ExecutionBackend>> CreateCudaBackend(
    int ordinal, const CudaBackendOptions& options) {
  absl::StatusOr<DriverTable> table = DriverTable::Load(options.driver_path);
  if (!table.ok()) return table.status();
  auto driver = std::make_unique<const DriverTable>(*table);
  absl::StatusOr<CudaDevice> device = DescribeDevice(*driver, ordinal);
  if (!device.ok()) return device.status();
  absl::StatusOr<PrimaryContext> context =
      PrimaryContext::Retain(*driver, device->handle);
  if (!context.ok()) return context.status();

  auto backend =
      std::make_unique<CudaBackend>(ordinal, options, std::move(driver),
                                    *std::move(device), *std::move(context));
  absl::Status status = backend->Start();
  if (!status.ok()) return status;
  return std::unique_ptr<ExecutionBackend>(std::move(backend));
}

}  // namespace kiln
