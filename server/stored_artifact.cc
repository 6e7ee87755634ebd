#include "server/stored_artifact.h"

#include <utility>

#include "proto/artifact_converter.h"

namespace kiln {

absl::StatusOr<StoredArtifact> MakeStoredArtifact(std::string bytes) {
  absl::StatusOr<Artifact> artifact = ParseArtifact(bytes);
  if (!artifact.ok()) return artifact.status();
  StoredArtifact stored;
  stored.bytes = std::move(bytes);
  stored.target = artifact->target;
  stored.slots = artifact->slots;
  for (Module& module : artifact->modules) {
    stored.kernels += static_cast<int>(module.entries.size());
    module.source.clear();
  }
  stored.bytes_without_source = SerializeArtifact(*artifact);
  return stored;
}

int64_t SizeInMemory(const StoredArtifact& artifact) {
  return sizeof(StoredArtifact) + artifact.bytes.size() +
         artifact.bytes_without_source.size() +
         artifact.slots.size() * sizeof(Slot);
}

}  // namespace kiln
