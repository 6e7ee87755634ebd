#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>

#include "jit/plan/attribute_fields.h"
#include "jit/plan/composed_ops.h"
#include "jit/plan/errors.h"
#include "jit/plan/nearest_name.h"
#include "jit/plan/op_table.h"
#include "jit/plan/plan_text.h"
#include "jit/plan/token_reader.h"
#include "jit/plan/validate.h"

namespace kiln {
namespace {

constexpr std::string_view kKeywords[] = {"grade", "input", "param", "output"};

std::vector<std::string_view> OpNames() {
  std::vector<std::string_view> names;
  for (const OpInfo& info : AllOps()) {
    names.push_back(info.name);
    if (!info.alias.empty()) names.push_back(info.alias);
  }
  return names;
}

// The names that may stand before "=" in a call of `info`.
std::vector<std::string_view> ArgumentNames(const OpInfo& info) {
  std::vector<std::string_view> names;
  for (const OperandInfo& operand : info.operands) {
    names.push_back(operand.name);
  }
  const Attributes attributes = DefaultAttributes(info);
  std::visit(
      [&](const auto& a) {
        VisitFields(info.kind, a,
                    [&](std::string_view name, const auto&, bool) {
                      names.push_back(name);
                    });
      },
      attributes);
  return names;
}

// One call, while its arguments are read.
struct Call {
  const OpInfo& info;
  Token name;
  Op op;
  std::vector<std::string_view> given;  // names of the arguments read so far
};

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : reader_(std::move(tokens)) {}

  absl::StatusOr<Plan> Run() {
    while (reader_.Peek().kind != TokenKind::kEnd) {
      if (absl::Status s = Statement(); !s.ok()) return s;
      if (absl::Status s = reader_.ExpectEndOfLine(); !s.ok()) return s;
    }
    ResolveOutputTypes(&plan_, untyped_outputs_);
    return std::move(plan_);
  }

 private:
  absl::Status Statement() {
    if (reader_.NextIs("=", 1)) return Definition();
    const absl::StatusOr<Token> keyword = reader_.ExpectName(
        "a statement: grade, input, param, output or "
        "NAME = OP(...)");
    if (!keyword.ok()) return keyword.status();
    if (keyword->text == "grade") return GradeStatement(*keyword);
    if (keyword->text == "input") return Input(InputRole::kActivation);
    if (keyword->text == "param") return Input(InputRole::kParameter);
    if (keyword->text == "output") return Output();
    return TextError(
        *keyword,
        "no statement starts so" +
            DidYouMean(keyword->text,
                       {std::begin(kKeywords), std::end(kKeywords)}),
        Describe(*keyword), "grade, input, param, output or NAME = OP(...)");
  }

  absl::Status GradeStatement(const Token& keyword) {
    if (has_grade_) {
      return TextError(keyword, "a plan has one grade", "a second", "one");
    }
    const Token name = reader_.Next();
    const std::optional<Grade> grade = ParseGrade(name.text);
    if (!grade.has_value()) {
      return TextError(name, "is not a grade", Describe(name), "fp32 or tf32");
    }
    plan_.grade = *grade;
    has_grade_ = true;
    return absl::OkStatus();
  }

  absl::Status Input(InputRole role) {
    if (!plan_.ops.empty()) {
      return TextError(reader_.Peek(), "an input stands behind an op",
                       Describe(reader_.Peek()),
                       "inputs and params before the first op");
    }
    const absl::StatusOr<Token> name = reader_.ExpectName("a name");
    if (!name.ok()) return name.status();
    PlanInput input{std::string(name->text), {}, role};
    if (absl::Status s = reader_.Expect(":"); !s.ok()) return s;
    if (absl::Status s = reader_.Read(&input.desc.dtype); !s.ok()) return s;
    if (absl::Status s = reader_.ReadExtents(&input.desc.dims); !s.ok()) {
      return s;
    }
    plan_.inputs.push_back(std::move(input));
    return Define(*name);
  }

  absl::Status Output() {
    absl::StatusOr<ValueId> value = Value();
    if (!value.ok()) return value.status();
    PlanOutput output{*value, DataType::kF32};
    const bool typed = reader_.Skip(":");
    if (typed) {
      if (absl::Status s = reader_.Read(&output.dtype); !s.ok()) return s;
    }
    plan_.outputs.push_back(output);
    untyped_outputs_.push_back(!typed);
    return absl::OkStatus();
  }

  absl::Status Definition() {
    const absl::StatusOr<Token> result = reader_.ExpectName("a name");
    if (!result.ok()) return result.status();
    if (absl::Status s = reader_.Expect("="); !s.ok()) return s;
    const absl::StatusOr<Token> name = reader_.ExpectName("an op name");
    if (!name.ok()) return name.status();
    const OpInfo* const info = FindOpByName(name->text);
    if (info == nullptr) {
      std::string hint = HowToWrite(name->text);
      if (hint.empty()) hint = DidYouMean(name->text, OpNames());
      return TextError(*name, "is not an op" + hint, Describe(*name),
                       "an op of docs/plan-language.md");
    }
    Call call{*info, *name, {}, {}};
    call.op.kind = info->kind;
    call.op.name = std::string(result->text);
    call.op.operands.resize(info->operands.size());
    call.op.attributes = DefaultAttributes(*info);
    if (absl::Status s = Arguments(&call); !s.ok()) return s;
    plan_.ops.push_back(std::move(call.op));
    return Define(*result);
  }

  absl::Status Arguments(Call* call) {
    if (absl::Status s = reader_.Expect("("); !s.ok()) return s;
    size_t positional = 0;
    while (!reader_.NextIs(")")) {
      const bool keyword = reader_.NextIs("=", 1);
      if (absl::Status s = keyword ? KeywordArgument(call)
                                   : PositionalArgument(call, positional++);
          !s.ok()) {
        return s;
      }
      if (!reader_.Skip(",")) break;
    }
    if (absl::Status s = reader_.Expect(")"); !s.ok()) return s;
    return FinishAttributes(call);
  }

  absl::Status PositionalArgument(Call* call, size_t position) {
    const Token at = reader_.Peek();
    if (position >= call->op.operands.size()) {
      return TextError(at,
                       fmt::format("{} takes at most {} operands; attributes "
                                   "are given by name",
                                   call->info.name, call->op.operands.size()),
                       Describe(at), ArgumentList(*call));
    }
    if (absl::Status s = Remember(at, call->info.operands[position].name, call);
        !s.ok()) {
      return s;
    }
    return ReadOperand(*call, &call->op.operands[position]);
  }

  absl::Status KeywordArgument(Call* call) {
    const Token name = reader_.Next();
    if (absl::Status s = reader_.Expect("="); !s.ok()) return s;
    if (absl::Status s = Remember(name, name.text, call); !s.ok()) return s;
    for (size_t i = 0; i < call->info.operands.size(); ++i) {
      if (call->info.operands[i].name == name.text) {
        return ReadOperand(*call, &call->op.operands[i]);
      }
    }
    return ReadAttribute(name, call);
  }

  absl::Status ReadAttribute(const Token& name, Call* call) {
    bool found = false;
    absl::Status status;
    const auto read = [&](std::string_view field, auto& value, bool) {
      if (field != name.text) return;
      found = true;
      status = reader_.Read(&value);
    };
    std::visit([&](auto& a) { VisitFields(call->op.kind, a, read); },
               call->op.attributes);
    if (found) return status;
    return TextError(
        name,
        fmt::format("{} has no such argument{}", call->info.name,
                    DidYouMean(name.text, ArgumentNames(call->info))),
        Describe(name), ArgumentList(*call));
  }

  // Checks that no attribute without a default is missing, and fills in the
  // stride of a pooling.
  absl::Status FinishAttributes(Call* call) {
    std::string_view missing;
    const auto check = [&](std::string_view field, const auto&, bool needed) {
      if (needed && missing.empty() && !IsGiven(*call, field)) missing = field;
    };
    std::visit([&](const auto& a) { VisitFields(call->op.kind, a, check); },
               call->op.attributes);
    if (!missing.empty()) {
      return TextError(call->name,
                       fmt::format("{} needs its {}", call->info.name, missing),
                       "nothing", fmt::format("{}=...", missing));
    }
    auto* const pool = std::get_if<PoolAttributes>(&call->op.attributes);
    if (pool != nullptr && !IsGiven(*call, "stride")) {
      pool->stride = pool->kernel_size;
    }
    return absl::OkStatus();
  }

  // A value, a number or "none".
  absl::Status ReadOperand(const Call& call, Operand* out) {
    if (reader_.SkipNone()) return absl::OkStatus();
    if (reader_.NextIsNumber()) {
      const Token at = reader_.Peek();
      if (call.info.op_class != OpClass::kBinary) {
        return TextError(
            at,
            fmt::format("{} takes a value here, not a number", call.info.name),
            Describe(at), ArgumentList(call));
      }
      return reader_.Read(&out->emplace<float>());
    }
    const absl::StatusOr<ValueId> value = Value();
    if (!value.ok()) return value.status();
    *out = *value;
    return absl::OkStatus();
  }

  absl::StatusOr<ValueId> Value() {
    const absl::StatusOr<Token> name =
        reader_.ExpectName("the name of a value");
    if (!name.ok()) return name.status();
    const auto found = values_.find(name->text);
    if (found != values_.end()) return found->second;
    std::vector<std::string_view> known;
    for (const auto& entry : values_) known.push_back(entry.first);
    return TextError(
        *name, "is not a value defined above" + DidYouMean(name->text, known),
        Describe(*name), "an input or the result of an op");
  }

  // Gives the value defined last its name.
  absl::Status Define(const Token& name) {
    const ValueId id{
        static_cast<int32_t>(plan_.inputs.size() + plan_.ops.size()) - 1};
    if (IsReservedWord(name.text)) {
      return TextError(name, "is a reserved word", Describe(name),
                       "another name");
    }
    if (values_.emplace(name.text, id).second) return absl::OkStatus();
    return TextError(name, "is defined a second time", Describe(name),
                     "each name once");
  }

  absl::Status Remember(const Token& at, std::string_view argument,
                        Call* call) {
    if (IsGiven(*call, argument)) {
      return TextError(at, fmt::format("{} is given twice", argument),
                       Describe(at), "each argument once");
    }
    call->given.push_back(argument);
    return absl::OkStatus();
  }

  static bool IsGiven(const Call& call, std::string_view argument) {
    return std::find(call.given.begin(), call.given.end(), argument) !=
           call.given.end();
  }

  static std::string ArgumentList(const Call& call) {
    return fmt::format("{}", fmt::join(ArgumentNames(call.info), ", "));
  }

  TokenReader reader_;
  Plan plan_;
  bool has_grade_ = false;
  std::vector<bool> untyped_outputs_;  // one per output
  std::map<std::string_view, ValueId> values_;
};

}  // namespace

absl::StatusOr<Plan> ParsePlanText(std::string_view text) {
  if (text.size() > kMaxPlanTextBytes) {
    return InvalidField("plan text", "is too long",
                        fmt::format("{} bytes", text.size()),
                        fmt::format("at most {} bytes", kMaxPlanTextBytes));
  }
  absl::StatusOr<std::vector<Token>> tokens = SplitPlanText(text);
  if (!tokens.ok()) return tokens.status();
  return Parser(*std::move(tokens)).Run();
}

}  // namespace kiln
