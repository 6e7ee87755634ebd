#ifndef KILN_TESTS_JIT_REFERENCE_GOLDEN_FILE_H_
#define KILN_TESTS_JIT_REFERENCE_GOLDEN_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kiln {

// One case of tests/goldens/pytorch.golden: a plan, its inputs, and what
// PyTorch computes for them.
struct GoldenCase {
  std::string name;
  std::string plan;                          // plan text
  std::vector<std::string> inputs;           // elements in storage type
  std::vector<std::vector<double>> outputs;  // unrounded
};

struct GoldenFile {
  std::string script;         // that wrote the file
  std::string torch_version;  // "2.11.0+cu130"
  std::vector<GoldenCase> cases;
};

// Reads a file of the format that tests/goldens/README.md specifies. Errors:
// NOT_FOUND, or DATA_LOSS for anything but a whole file of version 1.
absl::StatusOr<GoldenFile> ReadGoldenFile(const std::string& path);

// The same from the file's bytes.
absl::StatusOr<GoldenFile> ParseGoldenFile(const std::string& bytes);

}  // namespace kiln

#endif  // KILN_TESTS_JIT_REFERENCE_GOLDEN_FILE_H_
