#include "proto/plan_converter.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "jit/plan/errors.h"
#include "jit/plan/op_table.h"
#include "jit/plan/validate.h"
#include "proto/known_fields.h"
#include "proto/plan_attributes_converter.h"

namespace kiln {
namespace {

absl::StatusOr<TensorDesc> DescFromProto(const v1::TensorDesc& message,
                                         const std::string& path) {
  const absl::StatusOr<DataType> dtype =
      DataTypeFromProto(message.dtype(), path + ".dtype");
  if (!dtype.ok()) return dtype.status();
  if (message.layout() != v1::LAYOUT_UNSPECIFIED &&
      message.layout() != v1::CONTIGUOUS) {
    return UnknownField(
        path + ".layout", "is not a layout that this build knows",
        fmt::format("{}", static_cast<int>(message.layout())), "CONTIGUOUS");
  }
  return TensorDesc{*dtype, {message.dims().begin(), message.dims().end()}};
}

absl::StatusOr<InputRole> RoleFromProto(v1::InputRole role,
                                        const std::string& path) {
  switch (role) {
    case v1::INPUT_ROLE_UNSPECIFIED:
    case v1::ACTIVATION:
      return InputRole::kActivation;
    case v1::PARAMETER:
      return InputRole::kParameter;
    default:
      return UnknownField(path, "is not a role that this build knows",
                          fmt::format("{}", static_cast<int>(role)),
                          "ACTIVATION or PARAMETER");
  }
}

absl::StatusOr<PlanInput> InputFromProto(const v1::PlanInput& message,
                                         const std::string& path) {
  absl::StatusOr<TensorDesc> desc =
      DescFromProto(message.desc(), path + ".desc");
  if (!desc.ok()) return desc.status();
  const absl::StatusOr<InputRole> role =
      RoleFromProto(message.role(), path + ".role");
  if (!role.ok()) return role.status();
  return PlanInput{message.name(), *std::move(desc), *role};
}

Operand OperandFromProto(const v1::Operand& message) {
  switch (message.operand_case()) {
    case v1::Operand::kValue:
      return ValueId{message.value()};
    case v1::Operand::kConstant:
      return message.constant();
    case v1::Operand::OPERAND_NOT_SET:
      break;
  }
  return std::monostate();
}

// Optional operands at the end may be left out of the list.
void PadOperands(const OpInfo& info, std::vector<Operand>* operands) {
  while (operands->size() < info.operands.size() &&
         info.operands[operands->size()].optional) {
    operands->emplace_back();
  }
}

absl::StatusOr<Op> OpFromProto(const v1::Op& message, const std::string& path) {
  const bool fits = message.kind() <= 0xffff;
  const OpInfo* const info =
      fits ? FindOp(static_cast<OpKind>(message.kind())) : nullptr;
  if (info == nullptr) {
    return UnknownField(path + ".kind", "is not an op that this build knows",
                        fmt::format("{}", message.kind()),
                        "the numbers of docs/plan-language.md");
  }
  Op op{info->kind, message.name(), {}, {}};
  for (const v1::Operand& operand : message.operands()) {
    op.operands.push_back(OperandFromProto(operand));
  }
  PadOperands(*info, &op.operands);
  absl::StatusOr<Attributes> attributes =
      AttributesFromProto(message, *info, path);
  if (!attributes.ok()) return attributes.status();
  op.attributes = *std::move(attributes);
  return op;
}

void AddInput(const PlanInput& input, v1::Plan* plan) {
  v1::PlanInput* const message = plan->add_inputs();
  message->set_name(input.name);
  *message->mutable_desc() = ToProto(input.desc);
  message->set_role(static_cast<v1::InputRole>(input.role));
}

void AddOp(const Op& op, v1::Plan* plan) {
  v1::Op* const message = plan->add_ops();
  message->set_kind(static_cast<uint32_t>(op.kind));
  message->set_name(op.name);
  for (const Operand& operand : op.operands) {
    v1::Operand* const added = message->add_operands();
    if (const auto* value = std::get_if<ValueId>(&operand)) {
      added->set_value(value->index);
    } else if (const float* constant = std::get_if<float>(&operand)) {
      added->set_constant(*constant);
    }
  }
  AttributesToProto(op.attributes, message);
}

}  // namespace

absl::StatusOr<Plan> FromProto(const v1::Plan& message) {
  if (auto s = CheckKnownFields(message, "plan"); !s.ok()) return s;
  Plan plan;
  const absl::StatusOr<Grade> grade = FromProto(message.grade());
  if (!grade.ok()) return grade.status();
  plan.grade = *grade;
  for (int i = 0; i < message.inputs_size(); ++i) {
    absl::StatusOr<PlanInput> input =
        InputFromProto(message.inputs(i), fmt::format("inputs[{}]", i));
    if (!input.ok()) return input.status();
    plan.inputs.push_back(*std::move(input));
  }
  for (int i = 0; i < message.ops_size(); ++i) {
    absl::StatusOr<Op> op =
        OpFromProto(message.ops(i), fmt::format("ops[{}]", i));
    if (!op.ok()) return op.status();
    plan.ops.push_back(*std::move(op));
  }
  std::vector<bool> untyped;
  for (int i = 0; i < message.outputs_size(); ++i) {
    const v1::PlanOutput& output = message.outputs(i);
    untyped.push_back(output.dtype() == v1::DATA_TYPE_UNSPECIFIED);
    absl::StatusOr<DataType> dtype = DataType::kF32;
    if (!untyped.back()) {
      dtype = DataTypeFromProto(output.dtype(),
                                fmt::format("outputs[{}].dtype", i));
      if (!dtype.ok()) return dtype.status();
    }
    plan.outputs.push_back({ValueId{output.value()}, *dtype});
  }
  ResolveOutputTypes(&plan, untyped);
  return plan;
}

v1::Plan ToProto(const Plan& plan) {
  v1::Plan message;
  for (const PlanInput& input : plan.inputs) AddInput(input, &message);
  for (const Op& op : plan.ops) AddOp(op, &message);
  for (const PlanOutput& output : plan.outputs) {
    v1::PlanOutput* const added = message.add_outputs();
    added->set_value(output.value.index);
    added->set_dtype(static_cast<v1::DataType>(output.dtype));
  }
  message.set_grade(static_cast<v1::Grade>(plan.grade));
  return message;
}

absl::StatusOr<Grade> FromProto(v1::Grade grade) {
  switch (grade) {
    case v1::GRADE_UNSPECIFIED:
    case v1::FP32:
      return Grade::kFp32;
    case v1::TF32:
      return Grade::kTf32;
    default:
      return UnknownField("grade", "is not a grade that this build knows",
                          fmt::format("{}", static_cast<int>(grade)),
                          "FP32 or TF32");
  }
}

v1::TensorDesc ToProto(const TensorDesc& desc) {
  v1::TensorDesc message;
  message.set_dtype(static_cast<v1::DataType>(desc.dtype));
  message.mutable_dims()->Add(desc.dims.begin(), desc.dims.end());
  message.set_layout(v1::CONTIGUOUS);
  return message;
}

absl::StatusOr<TensorDesc> FromProto(const v1::TensorDesc& message) {
  return DescFromProto(message, "desc");
}

}  // namespace kiln
