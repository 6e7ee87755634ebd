#include "tests/ptx/syntax.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "tests/ptx/lexer.h"

namespace kiln::ptx {
namespace {

using Kind = OperandText::Kind;

bool IsNumber(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0]));
}

// "12", "0x1f", "0f3F800000" or "0d...": the bits.
uint64_t NumberBits(std::string_view text, bool* is_float) {
  *is_float = false;
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char kind = static_cast<char>(std::tolower(text[1]));
    *is_float = kind == 'f' || kind == 'd';
    if (*is_float || kind == 'x') {
      base = 16;
      text.remove_prefix(2);
    }
  }
  uint64_t bits = 0;
  std::from_chars(text.data(), text.data() + text.size(), bits, base);
  return bits;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(Tokens(text)) {}

  absl::StatusOr<ModuleText> Module() {
    ModuleText module;
    while (!AtEnd() && error_.empty()) {
      if (Take(".version") || Take(".address_size") || Take(".target")) {
        Next();
      } else if (Take(".visible") || Take(".weak")) {
        continue;
      } else if (Take(".entry")) {
        module.entries.push_back(Entry());
      } else {
        module.variables.push_back(Variable(";"));
      }
    }
    if (!error_.empty()) return absl::InvalidArgumentError(error_);
    return module;
  }

 private:
  std::string_view Peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)].text;
  }
  bool AtEnd() const { return Peek().empty(); }
  int line() const { return tokens_[at_].line; }

  std::string_view Next() {
    const std::string_view text = Peek();
    if (!AtEnd()) ++at_;
    return text;
  }

  bool Take(std::string_view text) {
    if (Peek() != text) return false;
    ++at_;
    return true;
  }

  void Expect(std::string_view text) {
    if (!Take(text)) Fail(fmt::format("'{}' is expected", text));
  }

  void Fail(const std::string& what) {
    if (error_.empty()) {
      error_ = fmt::format("Line {} of the PTX: {} at '{}'.", line(), what,
                           std::string(Peek()));
    }
    at_ = tokens_.size() - 1;
  }

  int64_t Integer() {
    bool is_float = false;
    if (!IsNumber(Peek())) Fail("a number is expected");
    return static_cast<int64_t>(NumberBits(Next(), &is_float));
  }

  // ".shared .align 4 .b8 name[16] = {1, 2}", or a parameter.
  VariableText Variable(std::string_view terminator) {
    VariableText variable;
    while (!AtEnd() && Peek()[0] == '.') {
      const std::string_view word = Next();
      if (word == ".align") {
        variable.align = Integer();
      } else if (TypeBytes(word) > 0) {
        variable.element_bytes = TypeBytes(word);
      } else if (word == ".global" || word == ".const" || word == ".shared" ||
                 word == ".param") {
        variable.space = word;
      } else if (word != ".extern" && word != ".ptr") {
        Fail(fmt::format("'{}' is not understood", std::string(word)));
      }
    }
    variable.name = Next();
    variable.size_bytes = variable.element_bytes;
    if (Take("[")) {
      variable.size_bytes *= Peek() == "]" ? 0 : Integer();
      Expect("]");
    }
    if (Take("=")) Values(&variable);
    if (!terminator.empty()) Expect(terminator);
    return variable;
  }

  void Values(VariableText* variable) {
    const bool is_list = Take("{");
    do {
      const OperandText value = Operand();
      if (value.kind != Kind::kNumber) Fail("a number is expected");
      variable->values.push_back(value.number);
    } while (is_list && Take(","));
    if (is_list) Expect("}");
  }

  EntryText Entry() {
    EntryText entry;
    entry.name = Next();
    if (Take("(")) {
      while (!AtEnd() && !Take(")")) {
        entry.parameters.push_back(Variable(""));
        Take(",");
      }
    }
    // Performance directives.
    while (!AtEnd() && Peek() != "{") Next();
    Body(&entry);
    return entry;
  }

  void Body(EntryText* entry) {
    Expect("{");
    entry->scopes.push_back(0);
    int scope = 0;
    while (!AtEnd()) {
      if (Take("{")) {
        entry->scopes.push_back(scope);
        scope = static_cast<int>(entry->scopes.size()) - 1;
      } else if (Take("}")) {
        if (scope == 0) return;
        scope = entry->scopes[scope];
      } else {
        Line(scope, entry);
      }
    }
    Fail("'}' is expected");
  }

  void Line(int scope, EntryText* entry) {
    if (Take(".reg")) return Registers(scope, entry);
    if (Peek() == ".shared") {
      entry->variables.push_back(Variable(";"));
    } else if (Peek()[0] == '.') {
      while (!AtEnd() && !Take(";")) Next();  // .pragma
    } else if (Peek(1) == ":") {
      entry->labels.push_back({scope, std::string(Next()),
                               static_cast<int>(entry->statements.size())});
      Next();
    } else if (!Take(";")) {
      entry->statements.push_back(Instruction(scope));
    }
  }

  void Registers(int scope, EntryText* entry) {
    const std::string type(Next());
    do {
      RegisterDeclaration declared{scope, type, std::string(Next())};
      if (Take("<")) {
        declared.count = static_cast<int>(Integer());
        Expect(">");
      }
      entry->registers.push_back(std::move(declared));
    } while (Take(","));
    Expect(";");
  }

  Statement Instruction(int scope) {
    Statement statement;
    statement.line = line();
    statement.scope = scope;
    if (Take("@")) {
      statement.guard_is_negated = Take("!");
      statement.guard = Next();
    }
    statement.opcode = Next();
    while (!AtEnd() && !Take(";")) {
      statement.operands.push_back(Operand());
      if (Peek() != ";") Expect(",");
    }
    return statement;
  }

  OperandText Operand() {
    OperandText operand;
    if (Take("[")) {
      operand = Address();
    } else if (Take("{")) {
      operand.kind = Kind::kList;
      do operand.elements.push_back(Operand());
      while (Take(","));
      Expect("}");
    } else if (Peek() == "-" || IsNumber(Peek())) {
      operand.kind = Kind::kNumber;
      const bool is_negative = Take("-");
      if (!IsNumber(Peek())) Fail("a number is expected");
      operand.number = NumberBits(Next(), &operand.is_float);
      if (is_negative) operand.number = -operand.number;
    } else {
      operand.is_negated = Take("!");
      operand.name = Next();
    }
    if (!Take("|")) return operand;
    OperandText pair;
    pair.kind = Kind::kPair;
    pair.elements = {std::move(operand), Operand()};
    return pair;
  }

  OperandText Address() {
    OperandText operand;
    operand.kind = Kind::kAddress;
    if (!IsNumber(Peek())) operand.name = Next();
    const bool has_sign = operand.name.empty() || Take("+");
    if (has_sign || Peek() == "-") {
      const bool is_negative = Take("-");
      const auto offset = static_cast<uint64_t>(Integer());
      operand.number = is_negative ? -offset : offset;
    }
    Expect("]");
    return operand;
  }

  const std::vector<Token> tokens_;
  size_t at_ = 0;
  std::string error_;
};

}  // namespace

absl::StatusOr<ModuleText> ParseModule(std::string_view text) {
  return Parser(text).Module();
}

int TypeBytes(std::string_view type) {
  if (!type.empty() && type[0] == '.') type.remove_prefix(1);
  if (type.size() < 2 || std::string_view("bsuf").find(type[0]) == type.npos) {
    return 0;
  }
  const std::string_view bits = type.substr(1);
  if (bits == "8") return 1;
  if (bits == "16") return 2;
  if (bits == "32") return 4;
  return bits == "64" ? 8 : 0;
}

}  // namespace kiln::ptx
