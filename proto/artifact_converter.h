#ifndef KILN_PROTO_ARTIFACT_CONVERTER_H_
#define KILN_PROTO_ARTIFACT_CONVERTER_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "jit/artifact/artifact.h"
#include "kiln/v1/artifact.pb.h"

namespace kiln {

v1::Artifact ToProto(const Artifact& artifact);

// Errors: INVALID_ARGUMENT with a field path for anything malformed: indices
// out of range, negative sizes, unset arguments, a cubin that does not match
// its digest; UNIMPLEMENTED for a format newer than this build's and for
// fields it does not know.
absl::StatusOr<Artifact> FromProto(const v1::Artifact& message);

// The same through bytes. Serialisation is deterministic: equal artifacts give
// equal bytes.
std::string SerializeArtifact(const Artifact& artifact);
absl::StatusOr<Artifact> ParseArtifact(std::string_view bytes);

}  // namespace kiln

#endif  // KILN_PROTO_ARTIFACT_CONVERTER_H_
