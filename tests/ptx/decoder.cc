// Longer than 400 lines because each form of an instruction is decoded here.
#include "tests/ptx/decoder.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "tests/ptx/memory.h"

namespace kiln::ptx {
namespace {

using Kind = OperandText::Kind;

constexpr const char* kSpecialNames[] = {
    "%tid.x",           "%tid.y",           "%tid.z",           "%ntid.x",
    "%ntid.y",          "%ntid.z",          "%ctaid.x",         "%ctaid.y",
    "%ctaid.z",         "%nctaid.x",        "%nctaid.y",        "%nctaid.z",
    "%cluster_ctaid.x", "%cluster_ctaid.y", "%cluster_ctaid.z", "%laneid",
    "%cluster_ctarank", "%warpid",          "%clock64"};

int64_t RoundUp(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}

struct Register {
  Width width = Width::kWord;
  Place place = -1;  // until it is used
};

Width WidthOf(const std::string& type) {
  if (type == ".pred") return Width::kPredicate;
  return TypeBytes(type) == 8 ? Width::kDouble : Width::kWord;
}

Width WidthOf(char letter) {
  if (letter == 'p') return Width::kPredicate;
  return letter == 'd' || letter == 'x' ? Width::kDouble : Width::kWord;
}

class Decoder {
 public:
  Decoder(const EntryText& entry,
          const std::map<std::string, uint64_t>& variables)
      : text_(entry), symbols_(variables) {
    entry_.special.fill(-1);
    entry_.num_parameters = entry.parameters.size();
  }

  absl::StatusOr<DecodedEntry> Run(const ModuleText& module) {
    PlaceSymbols(module);
    for (const RegisterDeclaration& declared : text_.registers) {
      Declare(declared);
    }
    for (const Statement& statement : text_.statements) {
      Decode(statement);
      if (!error_.empty()) return absl::InvalidArgumentError(error_);
    }
    // A last `ret`, should labels stand at the end.
    Statement end;
    end.opcode = "ret";
    Decode(end);
    Finish();
    return std::move(entry_);
  }

 private:
  void PlaceSymbols(const ModuleText& module) {
    int64_t offset = 0;
    for (const VariableText& parameter : text_.parameters) {
      symbols_[parameter.name] = offset;
      offset += sizeof(uint64_t);
    }
    int64_t shared = kSharedBase;
    const auto place_static = [&](const VariableText& variable) {
      if (variable.space != ".shared" || variable.size_bytes == 0) return;
      shared = RoundUp(shared, variable.align);
      symbols_[variable.name] = shared;
      shared += variable.size_bytes;
    };
    for (const VariableText& variable : module.variables) {
      place_static(variable);
    }
    for (const VariableText& variable : text_.variables) {
      place_static(variable);
    }
    // What the launch gives follows, at one place whatever it is called.
    for (const VariableText& variable : module.variables) {
      if (variable.space != ".shared" || variable.size_bytes > 0) continue;
      entry_.dynamic_shared_align =
          std::max(entry_.dynamic_shared_align, variable.align);
    }
    shared = RoundUp(shared, entry_.dynamic_shared_align);
    for (const VariableText& variable : module.variables) {
      if (variable.space != ".shared" || variable.size_bytes > 0) continue;
      symbols_[variable.name] = shared;
    }
    entry_.static_shared_bytes = shared - kSharedBase;
  }

  static std::string Scoped(int scope, const std::string& name) {
    return fmt::format("{}:{}", scope, name);
  }

  void Declare(const RegisterDeclaration& declared) {
    const Register fresh{WidthOf(declared.type)};
    if (declared.count == 0) {
      registers_[Scoped(declared.scope, declared.name)] = fresh;
    }
    for (int i = 0; i < declared.count; ++i) {
      registers_[Scoped(declared.scope, declared.name + std::to_string(i))] =
          fresh;
    }
  }

  // Null if there is none.
  Register* FindRegister(int scope, const std::string& name) {
    for (;; scope = text_.scopes[scope]) {
      const auto found = registers_.find(Scoped(scope, name));
      if (found != registers_.end()) {
        if (found->second.place < 0) {
          found->second.place = NewPlace(found->second.width);
        }
        return &found->second;
      }
      if (scope == 0) break;
    }
    return FindSpecial(name);
  }

  Register* FindSpecial(const std::string& name) {
    const auto* const found =
        std::find(std::begin(kSpecialNames), std::end(kSpecialNames), name);
    if (found == std::end(kSpecialNames)) return nullptr;
    Register& special = registers_[Scoped(0, name)];
    special.width = name == "%clock64" ? Width::kDouble : Width::kWord;
    special.place = NewPlace(special.width);
    entry_.special[found - std::begin(kSpecialNames)] = special.place;
    return &special;
  }

  static int64_t BytesOf(Width width) {
    if (width == Width::kPredicate) return 4;
    return kLanes * (width == Width::kDouble ? 8 : 4);
  }

  // Values are aligned to what vectors of the host like.
  Place NewPlace(Width width) {
    const int64_t bytes = BytesOf(width);
    int64_t& end = entry_.register_bytes;
    if (bytes > 4) end = RoundUp(end, 64);
    const auto place = static_cast<Place>(end);
    end += bytes;
    return place;
  }

  Place Constant(Width width, uint64_t value) {
    if (width == Width::kPredicate) value = value != 0 ? ~0u : 0;
    if (width != Width::kDouble) value &= ~0u;
    const auto [found, is_new] = constants_.emplace(std::pair(width, value), 0);
    if (!is_new) return found->second;
    std::vector<std::byte>& bytes = entry_.constants;
    const size_t at = RoundUp(static_cast<int64_t>(bytes.size()), 64);
    const size_t size = width == Width::kDouble ? 8 : 4;
    bytes.resize(at + kLanes * size);
    for (int lane = 0; lane < kLanes; ++lane) {
      std::memcpy(bytes.data() + at + lane * size, &value, size);
    }
    found->second = ~static_cast<Place>(at);
    return found->second;
  }

  void Fail(const Statement& statement, const std::string& what) {
    if (!error_.empty()) return;
    error_ = fmt::format("Line {} of the PTX: {} in '{}'.", statement.line,
                         what, statement.opcode);
  }

  // The place of a register, number or symbol.
  Place PlaceOf(const Statement& statement, const OperandText& operand,
                Width width) {
    if (operand.kind == Kind::kNumber) return Constant(width, operand.number);
    if (operand.kind != Kind::kName || operand.is_negated) {
      Fail(statement, "an operand is not understood");
      return -1;
    }
    if (operand.name == "_") return NewPlace(width);
    if (const Register* found = FindRegister(statement.scope, operand.name)) {
      if (found->width != width) {
        Fail(statement, fmt::format("{} has another width", operand.name));
      }
      return found->place;
    }
    const auto symbol = symbols_.find(operand.name);
    if (symbol == symbols_.end()) {
      Fail(statement, fmt::format("{} is not declared", operand.name));
      return -1;
    }
    return Constant(width, symbol->second);
  }

  void AddAddress(const Statement& statement, const OperandText& operand) {
    if (operand.kind != Kind::kAddress) {
      return Fail(statement, "an address is expected");
    }
    Width width = Width::kDouble;
    Place base = -1;
    const Register* const found =
        operand.name.empty() ? nullptr
                             : FindRegister(statement.scope, operand.name);
    if (found != nullptr) {
      width = found->width;
      base = found->place;
    } else if (operand.name.empty()) {
      base = Constant(width, 0);
    } else {
      OperandText symbol;
      symbol.name = operand.name;
      base = PlaceOf(statement, symbol, width);
    }
    Add(base);
    Add(static_cast<Place>(operand.number));
    Add(width == Width::kDouble ? 1 : 0);
  }

  void AddList(const Statement& statement, const OperandText& operand,
               Width width, size_t count) {
    if (operand.kind != Kind::kList) {
      if (count != 1) Fail(statement, "a list is expected");
      return Add(PlaceOf(statement, operand, width));
    }
    if (operand.elements.size() != count) {
      Fail(statement, "a list has another length");
    }
    for (const OperandText& element : operand.elements) {
      Add(PlaceOf(statement, element, width));
    }
  }

  void AddPair(const Statement& statement, const OperandText& operand) {
    if (operand.kind == Kind::kPair) {
      Add(PlaceOf(statement, operand.elements[0], Width::kWord));
      Add(PlaceOf(statement, operand.elements[1], Width::kPredicate));
    } else {
      Add(PlaceOf(statement, operand, Width::kWord));
      Add(NewPlace(Width::kPredicate));
    }
  }

  void Add(Place place) { entry_.operands.push_back(place); }

  // Whether a register among the operands, or in their lists, has 64 bits;
  // addresses do not count.
  bool HasWide(const Statement& statement) {
    for (const OperandText& operand : statement.operands) {
      const OperandText& first =
          operand.kind == Kind::kList ? operand.elements.front() : operand;
      if (first.kind != Kind::kName) continue;
      const Register* const found = FindRegister(statement.scope, first.name);
      if (found != nullptr) return found->width == Width::kDouble;
    }
    return false;
  }

  // A move that splits or joins a register has an operation of its own, and so
  // has a conversion of the low bits of one.
  std::string OpcodeOf(const Statement& statement) {
    if (TakesLow(statement)) return "cvt.low" + statement.opcode.substr(3);
    if (!statement.opcode.starts_with("mov.b")) return statement.opcode;
    const std::string bits = statement.opcode.substr(4);
    if (statement.operands[0].kind == Kind::kList) return "mov.split." + bits;
    if (statement.operands[1].kind == Kind::kList) return "mov.join." + bits;
    return statement.opcode;
  }

  // Of an integer that is narrower than the register it lies in.
  bool TakesLow(const Statement& statement) {
    const std::string& opcode = statement.opcode;
    if (!opcode.starts_with("cvt.") || opcode.ends_with("64")) return false;
    if (opcode.find(".f") != std::string::npos) return false;
    if (statement.operands.size() != 2) return false;
    const Register* const source =
        FindRegister(statement.scope, statement.operands[1].name);
    return source != nullptr && source->width == Width::kDouble;
  }

  void Decode(const Statement& statement) {
    const Operation* const operation =
        FindOperation(OpcodeOf(statement), HasWide(statement));
    if (operation == nullptr) return Fail(statement, "unknown instruction");
    Instruction i;
    i.handler = operation->handler;
    i.flow = operation->flow;
    i.count = operation->count;
    i.member_mask = operation->member_mask;
    i.line = statement.line;
    if (!statement.guard.empty()) {
      OperandText guard;
      guard.name = statement.guard;
      i.guard = PlaceOf(statement, guard, Width::kPredicate);
      i.guard_is_negated = statement.guard_is_negated;
    }
    first_operand_.push_back(entry_.operands.size());
    if (i.flow == Flow::kBranch) {
      AddTarget(statement, &i);
    } else {
      AddOperands(statement, *operation, &i);
    }
    entry_.code.push_back(i);
  }

  void AddTarget(const Statement& statement, Instruction* i) {
    const std::string name =
        statement.operands.empty() ? "" : statement.operands[0].name;
    for (int scope = statement.scope;; scope = text_.scopes[scope]) {
      for (const Label& label : LabelsOf(name)) {
        if (label.scope == scope) {
          i->target = label.statement;
          return;
        }
      }
      if (scope == 0) break;
    }
    Fail(statement, fmt::format("there is no label '{}'", name));
  }

  const std::vector<Label>& LabelsOf(const std::string& name) {
    if (labels_.empty()) {
      for (const Label& label : text_.labels) {
        labels_[label.name].push_back(label);
      }
    }
    return labels_[name];
  }

  void AddOperands(const Statement& statement, const Operation& operation,
                   Instruction* i) {
    const std::string& letters = operation.operands;
    const std::vector<OperandText>& operands = statement.operands;
    size_t next = 0;
    bool is_optional = false;
    for (size_t at = 0; at < letters.size(); ++at) {
      const char letter = letters[at];
      if (letter == '?') {
        is_optional = true;
        i->count = static_cast<uint8_t>(operands.size());
        continue;
      }
      if (next == operands.size()) {
        if (!is_optional) Fail(statement, "an operand is missing");
        break;
      }
      size_t count = operation.count;
      if (at + 1 < letters.size() && letters[at + 1] > '0' &&
          letters[at + 1] <= '9') {
        count = letters[++at] - '0';
      }
      AddOperand(statement, operands[next++], letter, count);
    }
    if (next < operands.size()) Fail(statement, "there are more operands");
  }

  void AddOperand(const Statement& statement, const OperandText& operand,
                  char letter, size_t count) {
    switch (letter) {
      case 'a':
        return AddAddress(statement, operand);
      case 'v':
      case 'x':
        return AddList(statement, operand, WidthOf(letter), count);
      case 'q':
        return AddPair(statement, operand);
      default:
        return Add(PlaceOf(statement, operand, WidthOf(letter)));
    }
  }

  void Finish() {
    entry_.register_bytes = RoundUp(entry_.register_bytes, 64);
    for (size_t i = 0; i < entry_.code.size(); ++i) {
      entry_.code[i].operands = entry_.operands.data() + first_operand_[i];
    }
  }

  const EntryText& text_;
  DecodedEntry entry_;
  std::map<std::string, uint64_t> symbols_;
  std::unordered_map<std::string, Register> registers_;  // by scope and name
  std::unordered_map<std::string, std::vector<Label>> labels_;
  std::map<std::pair<Width, uint64_t>, Place> constants_;
  std::vector<size_t> first_operand_;  // of each instruction
  std::string error_;
};

}  // namespace

absl::StatusOr<DecodedEntry> DecodeEntry(
    const ModuleText& module, const EntryText& entry,
    const std::map<std::string, uint64_t>& variables) {
  return Decoder(entry, variables).Run(module);
}

}  // namespace kiln::ptx
