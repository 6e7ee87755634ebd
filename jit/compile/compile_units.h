#ifndef KILN_JIT_COMPILE_COMPILE_UNITS_H_
#define KILN_JIT_COMPILE_COMPILE_UNITS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/artifact/artifact.h"
#include "jit/compile/kernel_spec.h"

namespace kiln {

class NvrtcCompiler;

// A generated unit, ready to be compiled.
struct Unit {
  std::vector<EntrySpec> entries;
  std::string source;
  // Writes the same with more registers for the threads of some entries: of
  // each, how many it had when ptxas put words aside for the sake of many
  // threads, or 0. May be empty: there are no more. Null: nothing may be
  // changed. Any thread may call it.
  std::function<std::string(const std::vector<int>& registers)>
      write_with_more = nullptr;
};

struct CompiledUnit {
  Module module;
  std::string refused;  // symbol of an entry that does not fit in registers
  std::string log;
};

// Compiles units side by side, on as many threads as there are processors.
// The results are in the order of `units`, whatever the threads do.
//
// Errors: those of NvrtcCompiler::Compile; INTERNAL where its log does not
// describe an entry. With several, the first unit's.
absl::StatusOr<std::vector<CompiledUnit>> CompileUnits(
    const std::vector<Unit>& units, const std::string& arch,
    NvrtcCompiler* nvrtc);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_COMPILE_UNITS_H_
