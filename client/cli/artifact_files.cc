#include "client/cli/artifact_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "client/cli/file_bytes.h"

namespace kiln::cli {

absl::StatusOr<std::vector<std::string>> WriteArtifact(
    const std::string& folder, const std::string& stem,
    const std::string& target, const std::string& bytes,
    const v1::Artifact& artifact) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::string name = fmt::format("{}.{}", stem, target);
  std::replace(name.begin(), name.end(), '/', '-');
  const std::string prefix = (std::filesystem::path(folder) / name).string();

  std::vector<std::pair<std::string, std::string_view>> files;
  files.emplace_back(prefix + ".artifact", bytes);
  for (int i = 0; i < artifact.modules_size(); ++i) {
    const v1::Module& module = artifact.modules(i);
    files.emplace_back(fmt::format("{}.{}.cubin", prefix, i), module.cubin());
    if (module.source().empty()) continue;
    files.emplace_back(fmt::format("{}.{}.cu", prefix, i), module.source());
  }
  std::vector<std::string> paths;
  for (const auto& file : files) {
    const absl::Status written = WriteFile(file.first, file.second);
    if (!written.ok()) return written;
    paths.push_back(file.first);
  }
  return paths;
}

Json KernelsJson(const v1::Artifact& artifact) {
  Json kernels = Json::array();
  for (const v1::Module& module : artifact.modules()) {
    for (const v1::KernelEntry& entry : module.entries()) {
      kernels.push_back({{"symbol", entry.symbol()},
                         {"registers", entry.registers()},
                         {"static_shared_bytes", entry.static_shared_bytes()},
                         {"local_bytes", entry.local_bytes()}});
    }
  }
  return kernels;
}

std::string SourcesOf(const v1::Artifact& artifact) {
  std::string text;
  for (int i = 0; i < artifact.modules_size(); ++i) {
    text += fmt::format("// module {} of {}\n{}\n", i + 1,
                        artifact.modules_size(), artifact.modules(i).source());
  }
  return text;
}

}  // namespace kiln::cli
