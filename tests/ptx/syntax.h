#ifndef KILN_TESTS_PTX_SYNTAX_H_
#define KILN_TESTS_PTX_SYNTAX_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kiln::ptx {

// PTX text as a tree, names unresolved. All types here are values.

// One operand: "%r1", "-4", "0f3F800000", "label", "[%rd1+16]", "{%f1, %f2}",
// "!%p1" or "%f1|%p2".
struct OperandText {
  enum class Kind : uint8_t { kName, kNumber, kAddress, kList, kPair };
  Kind kind = Kind::kName;
  std::string name;                   // kName, kAddress: empty if a bare number
  uint64_t number = 0;                // kNumber: its bits; kAddress: offset
  bool is_float = false;              // kNumber: written as 0f or 0d
  bool is_negated = false;            // kName: "!"
  std::vector<OperandText> elements;  // kList, kPair
};

struct Statement {
  int line = 0;       // of the text, from 1
  int scope = 0;      // index into EntryText::scopes
  std::string guard;  // predicate, or empty
  bool guard_is_negated = false;
  std::string opcode;  // "add.f32"
  std::vector<OperandText> operands;
};

struct RegisterDeclaration {
  int scope = 0;
  std::string type;  // ".b32"
  std::string name;
  int count = 0;  // of name0, name1, ...; 0: one register called `name`
};

struct Label {
  int scope = 0;
  std::string name;
  int statement = 0;  // that follows
};

// A variable in global, constant or shared memory.
struct VariableText {
  std::string space;  // ".shared"
  std::string name;
  int64_t align = 1;
  int64_t size_bytes = 0;        // 0: as much as the launch gives
  int64_t element_bytes = 1;     // of `values`
  std::vector<uint64_t> values;  // bits; the rest is zero
};

struct EntryText {
  std::string name;
  std::vector<VariableText> parameters;
  std::vector<VariableText> variables;
  std::vector<int> scopes;  // parents; the first, the body, has itself
  std::vector<RegisterDeclaration> registers;
  std::vector<Label> labels;
  std::vector<Statement> statements;
};

struct ModuleText {
  std::vector<VariableText> variables;
  std::vector<EntryText> entries;
};

// Reads what NVRTC writes. Errors: INVALID_ARGUMENT with the line, also for
// PTX that NVRTC does not write for our kernels, such as functions.
absl::StatusOr<ModuleText> ParseModule(std::string_view text);

// Bytes of a type such as ".f32", or "f32"; 0 for predicates and names that
// are no types.
int TypeBytes(std::string_view type);

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_SYNTAX_H_
