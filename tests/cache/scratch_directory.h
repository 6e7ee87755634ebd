#ifndef KILN_TESTS_CACHE_SCRATCH_DIRECTORY_H_
#define KILN_TESTS_CACHE_SCRATCH_DIRECTORY_H_

#include <spdlog/spdlog.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cache/digest.h"

namespace kiln {

// An empty directory, removed with all its contents at the end. Also silences
// the log: hostile tests cause thousands of warnings.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    spdlog::set_level(spdlog::level::off);
    std::string name =
        (std::filesystem::temp_directory_path() / "kiln-cache-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A valid key, different for each number.
inline std::string TestKey(int number) {
  return HexDigits(Sha256("test key " + std::to_string(number)));
}

inline std::filesystem::path EntryPath(const std::filesystem::path& directory,
                                       const std::string& key) {
  return directory / "entries" / key.substr(0, 2) / (key + ".kiln");
}

inline std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void WriteFile(const std::filesystem::path& path,
                      const std::string& contents) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << contents;
}

inline size_t FilesIn(const std::filesystem::path& directory) {
  size_t files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(directory)) {
    files += entry.is_directory() ? 0 : 1;
  }
  return files;
}

}  // namespace kiln

#endif  // KILN_TESTS_CACHE_SCRATCH_DIRECTORY_H_
