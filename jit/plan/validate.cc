#include "jit/plan/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "jit/plan/errors.h"
#include "jit/plan/infer.h"
#include "jit/plan/op_table.h"

namespace kiln {
namespace {

absl::Status CheckCount(std::string_view field, size_t count, int min,
                        int max) {
  if (count >= static_cast<size_t>(min) && count <= static_cast<size_t>(max)) {
    return absl::OkStatus();
  }
  return InvalidField(field, count == 0 ? "is empty" : "has too many entries",
                      fmt::format("{}", count),
                      fmt::format("{} to {}", min, max));
}

// The start of `name` in quotes, with backslashes, quotes and bytes that are no
// printable ASCII as \xNN.
std::string Quoted(std::string_view name) {
  std::string text = "'";
  for (const char c : name.substr(0, kMaxNameBytes)) {
    if (c < ' ' || c > '~' || c == '\\' || c == '\'') {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      text += c;
    }
  }
  return text + (name.size() > kMaxNameBytes ? "...'" : "'");
}

absl::Status CheckName(std::string_view field, const std::string& name) {
  const bool spelled = name.find_first_not_of(
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                           "abcdefghijklmnopqrstuvwxyz"
                           "0123456789_.-") == std::string::npos;
  if (spelled && name.size() <= kMaxNameBytes) return absl::OkStatus();
  return InvalidField(
      field, "is not a name",
      spelled ? fmt::format("{} characters", name.size()) : Quoted(name),
      fmt::format("at most {} of A-Z a-z 0-9 _ . -", kMaxNameBytes));
}

absl::Status CheckDataType(std::string_view field, DataType type) {
  if (ParseDataType(DataTypeName(type)).has_value()) return absl::OkStatus();
  return InvalidField(field, "is not a data type",
                      fmt::format("{}", static_cast<int>(type)),
                      "f32, f16 or bf16");
}

// Rank, extents and size. Every value counts as f32, which is what a plan
// keeps between ops.
absl::Status CheckExtents(std::string_view field, const Dims& dims) {
  if (dims.size() > static_cast<size_t>(kMaxRank)) {
    return InvalidField(fmt::format("{}.dims", field), "has too high a rank",
                        fmt::format("rank {}", dims.size()),
                        fmt::format("rank 0 to {}", kMaxRank));
  }
  Wide bytes = ElementSize(DataType::kF32);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 1 || dims[i] > kMaxDim) {
      return InvalidField(fmt::format("{}.dims[{}]", field, i),
                          "is out of range", fmt::format("{}", dims[i]),
                          fmt::format("1 to {}", kMaxDim));
    }
    bytes *= dims[i];
  }
  if (bytes <= kMaxTensorBytes) return absl::OkStatus();
  return InvalidField(fmt::format("{}.dims", field),
                      "describes too large a tensor",
                      fmt::format("{} bytes as f32", bytes),
                      fmt::format("at most {} bytes", kMaxTensorBytes));
}

absl::Status CheckInput(const PlanInput& input, size_t index) {
  const std::string path = fmt::format("inputs[{}]", index);
  if (auto s = CheckName(path + ".name", input.name); !s.ok()) return s;
  if (auto s = CheckDataType(path + ".desc.dtype", input.desc.dtype); !s.ok()) {
    return s;
  }
  if (auto s = CheckExtents(path + ".desc", input.desc.dims); !s.ok()) {
    return s;
  }
  if (input.role != InputRole::kActivation &&
      input.role != InputRole::kParameter) {
    return InvalidField(path + ".role", "is not a role",
                        fmt::format("{}", static_cast<int>(input.role)),
                        "activation (1) or parameter (2)");
  }
  return absl::OkStatus();
}

// Operand `i` of `context` may stand there; `value_count` values are defined.
absl::Status CheckOperand(const OpContext& context, size_t i,
                          size_t value_count) {
  const Operand& operand = context.op.operands[i];
  const OperandInfo& info = context.info.operands[i];
  if (std::holds_alternative<std::monostate>(operand)) {
    if (info.optional) return absl::OkStatus();
    return InvalidField(
        OperandPath(context, i),
        fmt::format("{} needs its {}", context.info.name, info.name), "nothing",
        "a value");
  }
  if (const float* constant = std::get_if<float>(&operand)) {
    if (context.info.op_class == OpClass::kBinary) return absl::OkStatus();
    return InvalidField(OperandPath(context, i),
                        fmt::format("{} of {} must not be a constant",
                                    info.name, context.info.name),
                        fmt::format("{}", *constant), "a value");
  }
  const int32_t index = std::get<ValueId>(operand).index;
  if (index >= 0 && static_cast<size_t>(index) < value_count) {
    return absl::OkStatus();
  }
  return InvalidField(
      OperandPath(context, i), "is not a value defined before this op",
      fmt::format("value {}", index),
      value_count == 0 ? std::string("no value is defined yet")
                       : fmt::format("value 0 to {}", value_count - 1));
}

absl::Status CheckForm(const OpContext& context, size_t value_count) {
  const std::string path = fmt::format("ops[{}]", context.index);
  if (auto s = CheckName(path + ".name", context.op.name); !s.ok()) return s;
  if (context.op.operands.size() != context.info.operands.size()) {
    return InvalidField(
        path + ".operands",
        fmt::format("{} has the wrong number of operands", context.info.name),
        fmt::format("{}", context.op.operands.size()),
        fmt::format("{}", context.info.operands.size()));
  }
  if (context.op.attributes.index() != context.info.attributes) {
    return InvalidField(path + ".attributes",
                        fmt::format("do not belong to {}", context.info.name),
                        AttributesFieldName(context.op.attributes.index()),
                        AttributesFieldName(context.info.attributes));
  }
  for (size_t i = 0; i < context.op.operands.size(); ++i) {
    if (auto s = CheckOperand(context, i, value_count); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorDesc> CheckOp(const Op& op, int index,
                                   const std::vector<TensorDesc>& values) {
  const OpInfo* const info = FindOp(op.kind);
  if (info == nullptr) {
    return UnknownField(fmt::format("ops[{}].kind", index),
                        "is not an op that this build knows",
                        fmt::format("{}", static_cast<int>(op.kind)),
                        "the numbers of docs/plan-language.md");
  }
  OpContext context{op, *info, index, {}};
  if (auto s = CheckForm(context, values.size()); !s.ok()) return s;
  for (const Operand& operand : op.operands) {
    const auto* id = std::get_if<ValueId>(&operand);
    context.operands.push_back(id == nullptr ? nullptr : &values[id->index]);
  }
  absl::StatusOr<TensorDesc> result = InferResult(context);
  if (!result.ok()) return result.status();
  const std::string path = fmt::format("ops[{}].result", index);
  if (auto s = CheckExtents(path, result->dims); !s.ok()) return s;
  return result;
}

absl::Status CheckOutput(const PlanOutput& output, size_t index,
                         size_t value_count) {
  const std::string path = fmt::format("outputs[{}]", index);
  if (output.value.index < 0 ||
      static_cast<size_t>(output.value.index) >= value_count) {
    return InvalidField(path + ".value", "is not a value of the plan",
                        fmt::format("value {}", output.value.index),
                        value_count == 0
                            ? std::string("the plan has none")
                            : fmt::format("value 0 to {}", value_count - 1));
  }
  return CheckDataType(path + ".dtype", output.dtype);
}

absl::Status CheckPlanFields(const Plan& plan) {
  if (auto s = CheckCount("inputs", plan.inputs.size(), 0, kMaxInputs);
      !s.ok()) {
    return s;
  }
  if (auto s = CheckCount("ops", plan.ops.size(), 0, kMaxOps); !s.ok()) {
    return s;
  }
  if (auto s = CheckCount("outputs", plan.outputs.size(), 1, kMaxOutputs);
      !s.ok()) {
    return s;
  }
  if (ParseGrade(GradeName(plan.grade)).has_value()) return absl::OkStatus();
  return InvalidField("grade", "is not a grade",
                      fmt::format("{}", static_cast<int>(plan.grade)),
                      "fp32 (1) or tf32 (2)");
}

}  // namespace

absl::StatusOr<std::vector<TensorDesc>> ValidatePlan(const Plan& plan) {
  if (auto s = CheckPlanFields(plan); !s.ok()) return s;
  std::vector<TensorDesc> values;
  values.reserve(plan.inputs.size() + plan.ops.size());
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    if (auto s = CheckInput(plan.inputs[i], i); !s.ok()) return s;
    values.push_back(plan.inputs[i].desc);
  }
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    absl::StatusOr<TensorDesc> result =
        CheckOp(plan.ops[i], static_cast<int>(i), values);
    if (!result.ok()) return result.status();
    values.push_back(*std::move(result));
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    if (auto s = CheckOutput(plan.outputs[i], i, values.size()); !s.ok()) {
      return s;
    }
  }
  return values;
}

void ResolveOutputTypes(Plan* plan, const std::vector<bool>& untyped) {
  if (std::find(untyped.begin(), untyped.end(), true) == untyped.end()) return;
  const absl::StatusOr<std::vector<TensorDesc>> values = ValidatePlan(*plan);
  for (size_t i = 0; i < plan->outputs.size(); ++i) {
    PlanOutput& output = plan->outputs[i];
    if (!untyped[i]) continue;
    output.dtype =
        values.ok() ? (*values)[output.value.index].dtype : DataType::kF32;
  }
}

}  // namespace kiln
