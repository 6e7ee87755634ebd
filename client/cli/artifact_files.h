#ifndef KILN_CLIENT_CLI_ARTIFACT_FILES_H_
#define KILN_CLIENT_CLI_ARTIFACT_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/terminal.h"
#include "kiln/v1/artifact.pb.h"

namespace kiln::cli {

// Writes an artifact into `folder`, which is made if missing, as
// <stem>.<target>.artifact (serialised kiln.v1.Artifact), and each of its
// modules as <stem>.<target>.<i>.cubin and, if it carries its source, .cu.
// Slashes of the target become dashes. Returns the paths.
//
// Errors: those of WriteFile.
absl::StatusOr<std::vector<std::string>> WriteArtifact(
    const std::string& folder, const std::string& stem,
    const std::string& target, const std::string& bytes,
    const v1::Artifact& artifact);

// [{"symbol", "registers", "static_shared_bytes", "local_bytes"}, ...]
Json KernelsJson(const v1::Artifact& artifact);

// The generated translation units, each under a comment that names it.
std::string SourcesOf(const v1::Artifact& artifact);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_ARTIFACT_FILES_H_
