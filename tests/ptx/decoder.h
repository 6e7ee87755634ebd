#ifndef KILN_TESTS_PTX_DECODER_H_
#define KILN_TESTS_PTX_DECODER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/ptx/instruction.h"
#include "tests/ptx/syntax.h"

namespace kiln::ptx {

// An entry, ready to be run. Owns what `code` points to; moving it keeps that.
struct DecodedEntry {
  std::vector<Instruction> code;
  std::vector<Place> operands;
  std::vector<std::byte> constants;
  std::array<Place, 19> special = {};  // Machine::Program
  int64_t register_bytes = 0;
  int64_t static_shared_bytes = 0;
  int64_t dynamic_shared_align = 1;
  size_t num_parameters = 0;
};

// `variables`: addresses of the module's variables in global memory.
// `module`: has its variables in shared memory. Errors: INVALID_ARGUMENT.
absl::StatusOr<DecodedEntry> DecodeEntry(
    const ModuleText& module, const EntryText& entry,
    const std::map<std::string, uint64_t>& variables);

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_DECODER_H_
