#include "server/cuda_arena.h"

#include <fmt/format.h>

#include <utility>

namespace kiln {

int64_t CudaArena::size_bytes() const {
  int64_t size = shared_workspace_.size_bytes();
  for (const auto& [key, areas] : areas_) {
    size += areas.workspace.size_bytes() + areas.prepared.size_bytes();
  }
  return size;
}

bool CudaArena::EvictOldest(const std::string& keep) {
  auto oldest = areas_.end();
  for (auto it = areas_.begin(); it != areas_.end(); ++it) {
    if (it->first == keep) continue;
    if (oldest == areas_.end() ||
        it->second.last_use < oldest->second.last_use) {
      oldest = it;
    }
  }
  if (oldest == areas_.end()) return false;
  areas_.erase(oldest);
  return true;
}

absl::StatusOr<DeviceMemory> CudaArena::Allocate(const std::string& keep,
                                                 int64_t size) {
  while (size > limit_bytes_ - size_bytes()) {
    if (EvictOldest(keep)) continue;
    return absl::ResourceExhaustedError(fmt::format(
        "The session's working memory exceeds its limit ({} + {} of {} bytes).",
        size_bytes(), size, limit_bytes_));
  }
  absl::StatusOr<DeviceMemory> memory = DeviceMemory::Allocate(driver_, size);
  while (absl::IsResourceExhausted(memory.status()) && EvictOldest(keep)) {
    memory = DeviceMemory::Allocate(driver_, size);
  }
  return memory;
}

absl::Status CudaArena::Grow(const std::string& key, int64_t size,
                             DeviceMemory& memory) {
  if (memory.size_bytes() >= size) return absl::OkStatus();
  memory = DeviceMemory();
  absl::StatusOr<DeviceMemory> grown = Allocate(key, size);
  if (!grown.ok()) return grown.status();
  memory = *std::move(grown);
  return absl::OkStatus();
}

absl::StatusOr<LaunchAreas*> CudaArena::Reserve(
    const std::string& key, const LoadedArtifact& artifact) {
  Areas& areas = areas_[key];
  areas.last_use = ++uses_;
  const bool keeps_workspace = artifact.keeps_workspace();
  DeviceMemory& workspace =
      keeps_workspace ? areas.workspace : shared_workspace_;
  // By sizes: memory that is allocated anew may lie where the old one did.
  const bool loses_contents =
      areas.prepared.size_bytes() < artifact.prepared_bytes() ||
      (keeps_workspace && workspace.size_bytes() < artifact.workspace_bytes());
  absl::Status status = Grow(key, artifact.workspace_bytes(), workspace);
  if (status.ok()) {
    status = Grow(key, artifact.prepared_bytes(), areas.prepared);
  }
  if (!status.ok()) {
    areas_.erase(key);
    return status;
  }

  if (loses_contents) areas.launch = LaunchAreas{};
  areas.launch.workspace = workspace.get();
  areas.launch.prepared = areas.prepared.get();
  return &areas.launch;
}

}  // namespace kiln
