#ifndef KILN_JIT_COMPILE_TOOLCHAIN_H_
#define KILN_JIT_COMPILE_TOOLCHAIN_H_

#include <string>

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

// Finds NVRTC: `path` (a file or a folder) if not empty, else the dynamic
// linker's cache, CUDA_PATH-like usual prefixes, and `extra_dir` (where
// scripts/setup puts PyPI's wheels). Newest version first.
//
// Errors: NOT_FOUND listing where it looked; INVALID_ARGUMENT if `path` is
// given and holds none. Pure reads; nothing is loaded.
absl::StatusOr<Toolchain> FindToolchain(const std::string& path,
                                        const std::string& extra_dir);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_TOOLCHAIN_H_
