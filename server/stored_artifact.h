#ifndef KILN_SERVER_STORED_ARTIFACT_H_
#define KILN_SERVER_STORED_ARTIFACT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/artifact/artifact.h"
#include "kiln/v1/service.pb.h"

namespace kiln {

// An artifact as the memory tier holds it: the bytes that are sent, and what
// Execute checks bindings against. A value.
struct StoredArtifact {
  std::string bytes;                 // serialised kiln.v1.Artifact
  std::string bytes_without_source;  // the same without generated sources
  Target target;
  std::vector<Slot> slots;
  int kernels = 0;

  // How it came into memory, and how long that took.
  v1::Source source = v1::SOURCE_UNSPECIFIED;
  int64_t queue_us = 0;
  int64_t generate_us = 0;
  int64_t nvrtc_us = 0;
  int64_t store_us = 0;
};

// Reads `bytes`. Errors: those of ParseArtifact.
absl::StatusOr<StoredArtifact> MakeStoredArtifact(std::string bytes);

// Bytes that the value takes in memory, roughly.
int64_t SizeInMemory(const StoredArtifact& artifact);

}  // namespace kiln

#endif  // KILN_SERVER_STORED_ARTIFACT_H_
