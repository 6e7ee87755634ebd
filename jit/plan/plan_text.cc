#include "jit/plan/plan_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <set>

#include "jit/plan/attribute_fields.h"
#include "jit/plan/op_table.h"
#include "jit/plan/token_reader.h"

namespace kiln {
namespace {

// Plan text can spell `name`: a letter or underscore, then letters, digits and
// _ . -
bool IsSpellable(std::string_view name) {
  constexpr std::string_view kFirst =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
  constexpr std::string_view kRest =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789.-";
  return !name.empty() && name.size() <= kMaxNameBytes &&
         kFirst.find(name[0]) != std::string_view::npos &&
         name.find_first_not_of(kRest) == std::string_view::npos &&
         !IsReservedWord(name);
}

// A name for every value: its own, or a fresh one.
std::vector<std::string> ValueNames(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlanInput& input : plan.inputs) names.push_back(input.name);
  for (const Op& op : plan.ops) names.push_back(op.name);

  std::set<std::string> taken;
  for (std::string& name : names) {
    if (!IsSpellable(name) || !taken.insert(name).second) name.clear();
  }
  int next = 0;
  for (std::string& name : names) {
    while (name.empty()) {
      std::string fresh = fmt::format("v{}", next++);
      if (taken.insert(fresh).second) name = std::move(fresh);
    }
  }
  return names;
}

std::string NameOf(ValueId value, const std::vector<std::string>& names) {
  const bool known =
      value.index >= 0 && static_cast<size_t>(value.index) < names.size();
  return known ? names[value.index] : fmt::format("value[{}]", value.index);
}

std::string Literal(bool value) { return value ? "true" : "false"; }
std::string Literal(int64_t value) { return fmt::format("{}", value); }
// Shortest decimal that reads back as the same f32.
std::string Literal(float value) { return fmt::format("{}", value); }
std::string Literal(DataType value) { return std::string(DataTypeName(value)); }

std::string Literal(GeluApproximate value) {
  return value == GeluApproximate::kTanh ? "tanh" : "none";
}

std::string Literal(const Pair& value) {
  if (value[0] == value[1]) return Literal(value[0]);
  return fmt::format("[{},{}]", value[0], value[1]);
}

std::string Literal(const Dims& value) {
  if (value.size() == 1) return Literal(value[0]);
  return fmt::format("[{}]", fmt::join(value, ","));
}

template <typename T>
std::string Literal(const std::optional<T>& value) {
  return value.has_value() ? Literal(*value) : "none";
}

// The attributes that text must write, "name=literal" each: those without a
// default and those that differ from it.
std::vector<std::string> AttributeTexts(const Op& op, const OpInfo& info) {
  Attributes defaults = DefaultAttributes(info);
  const auto* pool = std::get_if<PoolAttributes>(&op.attributes);
  auto* pool_defaults = std::get_if<PoolAttributes>(&defaults);
  if (pool != nullptr && pool_defaults != nullptr) {
    pool_defaults->stride = pool->kernel_size;
  }
  std::vector<std::string> default_texts;
  std::visit(
      [&](const auto& a) {
        VisitFields(op.kind, a, [&](auto, const auto& value, bool) {
          default_texts.push_back(Literal(value));
        });
      },
      defaults);

  std::vector<std::string> texts;
  size_t i = 0;
  std::visit(
      [&](const auto& a) {
        VisitFields(op.kind, a,
                    [&](std::string_view name, const auto& value, bool needed) {
                      std::string text = Literal(value);
                      const bool same =
                          i < default_texts.size() && default_texts[i] == text;
                      ++i;
                      if (same && !needed) return;
                      texts.push_back(fmt::format("{}={}", name, text));
                    });
      },
      op.attributes);
  return texts;
}

// Operands by position up to the first one left out, by name behind it.
std::vector<std::string> OperandTexts(const Op& op, const OpInfo* info,
                                      const std::vector<std::string>& names) {
  std::vector<std::string> texts;
  bool by_name = false;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const Operand& operand = op.operands[i];
    const bool listed = info != nullptr && i < info->operands.size();
    std::string text = "none";
    if (const auto* value = std::get_if<ValueId>(&operand)) {
      text = NameOf(*value, names);
    } else if (const float* constant = std::get_if<float>(&operand)) {
      text = Literal(*constant);
    } else if (listed && info->operands[i].optional) {
      by_name = true;
      continue;
    }
    texts.push_back(by_name && listed
                        ? fmt::format("{}={}", info->operands[i].name, text)
                        : text);
  }
  return texts;
}

std::string OpText(const Op& op, const std::string& name,
                   const std::vector<std::string>& names) {
  const OpInfo* const info = FindOp(op.kind);
  std::vector<std::string> arguments = OperandTexts(op, info, names);
  if (info != nullptr) {
    for (std::string& text : AttributeTexts(op, *info)) {
      arguments.push_back(std::move(text));
    }
  }
  const std::string op_name =
      info != nullptr ? std::string(info->name)
                      : fmt::format("op_{}", static_cast<int>(op.kind));
  return fmt::format("{} = {}({})\n", name, op_name,
                     fmt::join(arguments, ", "));
}

}  // namespace

std::string ToText(const Plan& plan) {
  const std::vector<std::string> names = ValueNames(plan);
  std::string out = fmt::format("grade {}\n", GradeName(plan.grade));
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const PlanInput& input = plan.inputs[i];
    out += fmt::format("{} {}: {}\n",
                       input.role == InputRole::kParameter ? "param" : "input",
                       names[i], ToString(input.desc));
  }
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    out += OpText(plan.ops[i], names[plan.inputs.size() + i], names);
  }
  for (const PlanOutput& output : plan.outputs) {
    out += fmt::format("output {}: {}\n", NameOf(output.value, names),
                       DataTypeName(output.dtype));
  }
  return out;
}

}  // namespace kiln
