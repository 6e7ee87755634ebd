#ifndef KILN_JIT_COMPILE_TOOLCHAIN_H_
#define KILN_JIT_COMPILE_TOOLCHAIN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kiln {

// An NVRTC installation, identified without loading it. A value.
struct Toolchain {
  std::string library_path;   // of libnvrtc.so.N
  std::string builtins_path;  // of libnvrtc-builtins.so beside it
  // ELF build-ids of both files, "<nvrtc>+<builtins>": nvrtcVersion() cannot
  // tell patch releases apart. Stands in every key.
  std::string id;
  std::string version;  // "13.0", from the file names; for people
};

// Finds NVRTC: `path` (a file or a folder) if not empty, else `extra_dir`
// (where scripts/setup puts PyPI's wheels), `cuda_roots` (values of CUDA_PATH
// and CUDA_HOME, which main reads), the folders of the dynamic linker's
// configuration, and /usr/local/cuda*. Newest version first; of equals, the
// first found.
//
// Errors: NOT_FOUND listing where it looked; INVALID_ARGUMENT if `path` is
// given and holds none. Pure reads; nothing is loaded.
absl::StatusOr<Toolchain> FindToolchain(
    const std::string& path, const std::string& extra_dir,
    const std::vector<std::string>& cuda_roots = {});

// The newest NVRTC directly in one of `folders`. Errors: NOT_FOUND.
absl::StatusOr<Toolchain> FindToolchainIn(
    const std::vector<std::string>& folders);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_TOOLCHAIN_H_
