#include "jit/compile/toolchain.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "jit/compile/elf_build_id.h"
#include "jit/compile/errors.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLibraryPrefix = "libnvrtc.so.";
constexpr std::string_view kBuiltinsPrefix = "libnvrtc-builtins.so.";

// {13, 0} for "13.0"; empty if the text is no dotted number.
std::vector<int> ParseVersion(std::string_view text) {
  std::vector<int> version;
  while (!text.empty()) {
    int number = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return {};
    version.push_back(number);
    text.remove_prefix(end - text.data());
    if (text.empty()) return version;
    if (text[0] != '.' || text.size() == 1) return {};
    text.remove_prefix(1);
  }
  return version;
}

struct VersionedFile {
  std::string path;
  std::string version;
};

// The file of `folder` named prefix + version with the newest version; the
// shortest such name, which is the stable link where there is one.
std::optional<VersionedFile> NewestFile(const std::string& folder,
                                        std::string_view prefix) {
  std::optional<VersionedFile> newest;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.rfind(prefix, 0) != 0) continue;
    const std::string version = name.substr(prefix.size());
    if (ParseVersion(version).empty()) continue;
    if (!newest ||
        ParseVersion(version)[0] > ParseVersion(newest->version)[0] ||
        (ParseVersion(version)[0] == ParseVersion(newest->version)[0] &&
         version.size() < newest->version.size())) {
      newest = VersionedFile{it->path().string(), version};
    }
  }
  return newest;
}

// The NVRTC of one folder, if both files are there and have build-ids.
std::optional<Toolchain> ToolchainIn(const std::string& folder) {
  const auto library = NewestFile(folder, kLibraryPrefix);
  const auto builtins = NewestFile(folder, kBuiltinsPrefix);
  if (!library || !builtins) return std::nullopt;
  const auto library_id = ElfBuildId(library->path);
  const auto builtins_id = ElfBuildId(builtins->path);
  if (!library_id || !builtins_id) return std::nullopt;
  return Toolchain{library->path, builtins->path,
                   *library_id + "+" + *builtins_id, builtins->version};
}

// Where an unpacked wheel, a toolkit or a plain folder keeps its libraries.
void AddRoot(const std::string& root, std::vector<std::string>* folders) {
  for (const char* below :
       {"", "lib64", "lib", "nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib",
        "targets/x86_64-linux/lib"}) {
    folders->push_back(fs::path(root).append(below).string());
  }
}

// Folders named in a file of the dynamic linker's configuration, one a line.
void AddLinkerFile(const fs::path& file, std::vector<std::string>* folders) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find_last_not_of(" \t") + 1);
    if (!line.empty() && line[0] == '/') folders->push_back(line);
  }
}

std::vector<std::string> SortedEntries(const fs::path& folder,
                                       std::string_view prefix) {
  std::vector<std::string> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().filename().string().rfind(prefix, 0) == 0) {
      entries.push_back(it->path().string());
    }
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

std::vector<std::string> SystemFolders() {
  std::vector<std::string> folders;
  AddLinkerFile("/etc/ld.so.conf", &folders);
  for (const std::string& file : SortedEntries("/etc/ld.so.conf.d", "")) {
    AddLinkerFile(file, &folders);
  }
  for (const std::string& root : SortedEntries("/usr/local", "cuda")) {
    AddRoot(root, &folders);
  }
  folders.insert(folders.end(), {"/usr/lib/x86_64-linux-gnu", "/usr/lib64",
                                 "/usr/lib", "/usr/local/lib"});
  return folders;
}

absl::StatusOr<Toolchain> ToolchainAt(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return NvrtcNotAt(path, "does not exist");
  std::vector<std::string> folders;
  if (fs::is_directory(status)) {
    AddRoot(path, &folders);
  } else {
    folders.push_back(fs::path(path).parent_path().string());
  }
  absl::StatusOr<Toolchain> found = FindToolchainIn(folders);
  if (!found.ok()) return NvrtcNotAt(path, "holds no NVRTC");
  if (!fs::is_directory(status)) {
    const auto id = ElfBuildId(path);
    if (!id) return NvrtcNotAt(path, "is no library with a build-id");
    found->library_path = path;
    found->id = *id + found->id.substr(found->id.find('+'));
  }
  return found;
}

}  // namespace

absl::StatusOr<Toolchain> FindToolchainIn(
    const std::vector<std::string>& folders) {
  std::optional<Toolchain> newest;
  for (const std::string& folder : folders) {
    std::optional<Toolchain> found = ToolchainIn(folder);
    if (found && (!newest || ParseVersion(found->version) >
                                 ParseVersion(newest->version))) {
      newest = std::move(found);
    }
  }
  if (!newest) return NvrtcNotFound(folders);
  return *std::move(newest);
}

absl::StatusOr<Toolchain> FindToolchain(
    const std::string& path, const std::string& extra_dir,
    const std::vector<std::string>& cuda_roots) {
  if (!path.empty()) return ToolchainAt(path);
  std::vector<std::string> folders;
  if (!extra_dir.empty()) AddRoot(extra_dir, &folders);
  for (const std::string& root : cuda_roots) {
    if (!root.empty()) AddRoot(root, &folders);
  }
  for (std::string& folder : SystemFolders()) {
    folders.push_back(std::move(folder));
  }
  return FindToolchainIn(folders);
}

}  // namespace kiln
