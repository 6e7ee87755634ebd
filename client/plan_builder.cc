#include "client/plan_builder.h"

#include <utility>

#include "jit/plan/validate.h"

namespace kiln {
namespace {

Operand ToOperand(const std::optional<ValueId>& value) {
  return value.has_value() ? Operand(*value) : Operand();
}

}  // namespace

ValueId PlanBuilder::AddInput(std::string_view name, DataType dtype, Dims dims,
                              InputRole role) {
  plan_.inputs.push_back({std::string(name), {dtype, std::move(dims)}, role});
  return {static_cast<int32_t>(plan_.inputs.size()) - 1};
}

ValueId PlanBuilder::AddOp(OpKind kind, std::vector<Operand> operands,
                           Attributes attributes) {
  plan_.ops.push_back({kind, "", std::move(operands), std::move(attributes)});
  return {kFirstOp + static_cast<int32_t>(plan_.ops.size()) - 1};
}

ValueId PlanBuilder::Input(std::string_view name, DataType dtype, Dims dims) {
  return AddInput(name, dtype, std::move(dims), InputRole::kActivation);
}

ValueId PlanBuilder::Param(std::string_view name, DataType dtype, Dims dims) {
  return AddInput(name, dtype, std::move(dims), InputRole::kParameter);
}

ValueId PlanBuilder::Conv2d(ValueId input, ValueId weight, Optional bias,
                            const ConvAttributes& attributes) {
  return AddOp(OpKind::kConv2d, {input, weight, ToOperand(bias)}, attributes);
}

ValueId PlanBuilder::ConvTranspose2d(ValueId input, ValueId weight,
                                     Optional bias,
                                     const ConvAttributes& attributes) {
  return AddOp(OpKind::kConvTranspose2d, {input, weight, ToOperand(bias)},
               attributes);
}

ValueId PlanBuilder::GroupNorm(ValueId input,
                               const GroupNormAttributes& attributes,
                               Optional weight, Optional bias) {
  return AddOp(OpKind::kGroupNorm, {input, ToOperand(weight), ToOperand(bias)},
               attributes);
}

ValueId PlanBuilder::BatchNorm(ValueId input, ValueId running_mean,
                               ValueId running_var, Optional weight,
                               Optional bias,
                               const BatchNormAttributes& attributes) {
  return AddOp(
      OpKind::kBatchNorm,
      {input, running_mean, running_var, ToOperand(weight), ToOperand(bias)},
      attributes);
}

ValueId PlanBuilder::MaxPool2d(ValueId input,
                               const PoolAttributes& attributes) {
  return AddOp(OpKind::kMaxPool2d, {input}, attributes);
}

ValueId PlanBuilder::AvgPool2d(ValueId input,
                               const PoolAttributes& attributes) {
  return AddOp(OpKind::kAvgPool2d, {input}, attributes);
}

ValueId PlanBuilder::Sum(ValueId input, const ReduceAttributes& attributes) {
  return AddOp(OpKind::kSum, {input}, attributes);
}

ValueId PlanBuilder::Mean(ValueId input, const ReduceAttributes& attributes) {
  return AddOp(OpKind::kMean, {input}, attributes);
}

ValueId PlanBuilder::Amax(ValueId input, const ReduceAttributes& attributes) {
  return AddOp(OpKind::kAmax, {input}, attributes);
}

ValueId PlanBuilder::Amin(ValueId input, const ReduceAttributes& attributes) {
  return AddOp(OpKind::kAmin, {input}, attributes);
}

ValueId PlanBuilder::LogSumExp(ValueId input,
                               const ReduceAttributes& attributes) {
  return AddOp(OpKind::kLogSumExp, {input}, attributes);
}

ValueId PlanBuilder::Softmax(ValueId input, int64_t dim) {
  return AddOp(OpKind::kSoftmax, {input}, SoftmaxAttributes{dim});
}

ValueId PlanBuilder::Relu(ValueId input) {
  return AddOp(OpKind::kRelu, {input});
}

ValueId PlanBuilder::LeakyRelu(ValueId input, float negative_slope) {
  return AddOp(OpKind::kLeakyRelu, {input},
               LeakyReluAttributes{negative_slope});
}

ValueId PlanBuilder::Gelu(ValueId input, GeluApproximate approximate) {
  return AddOp(OpKind::kGelu, {input}, GeluAttributes{approximate});
}

ValueId PlanBuilder::Tanh(ValueId input) {
  return AddOp(OpKind::kTanh, {input});
}

ValueId PlanBuilder::Sigmoid(ValueId input) {
  return AddOp(OpKind::kSigmoid, {input});
}

ValueId PlanBuilder::Silu(ValueId input) {
  return AddOp(OpKind::kSilu, {input});
}

ValueId PlanBuilder::Hardswish(ValueId input) {
  return AddOp(OpKind::kHardswish, {input});
}

ValueId PlanBuilder::Hardsigmoid(ValueId input) {
  return AddOp(OpKind::kHardsigmoid, {input});
}

ValueId PlanBuilder::Hardtanh(ValueId input, float min, float max) {
  return AddOp(OpKind::kHardtanh, {input}, ClampAttributes{min, max});
}

ValueId PlanBuilder::Clamp(ValueId input, std::optional<float> min,
                           std::optional<float> max) {
  return AddOp(OpKind::kClamp, {input}, ClampAttributes{min, max});
}

ValueId PlanBuilder::Mish(ValueId input) {
  return AddOp(OpKind::kMish, {input});
}

ValueId PlanBuilder::Softplus(ValueId input,
                              const SoftplusAttributes& attributes) {
  return AddOp(OpKind::kSoftplus, {input}, attributes);
}

ValueId PlanBuilder::Elu(ValueId input, float alpha) {
  return AddOp(OpKind::kElu, {input}, EluAttributes{alpha});
}

ValueId PlanBuilder::Abs(ValueId input) { return AddOp(OpKind::kAbs, {input}); }

ValueId PlanBuilder::Neg(ValueId input) { return AddOp(OpKind::kNeg, {input}); }

ValueId PlanBuilder::Exp(ValueId input) { return AddOp(OpKind::kExp, {input}); }

ValueId PlanBuilder::Sqrt(ValueId input) {
  return AddOp(OpKind::kSqrt, {input});
}

ValueId PlanBuilder::Add(Operand input, Operand other) {
  return AddOp(OpKind::kAdd, {input, other});
}

ValueId PlanBuilder::Sub(Operand input, Operand other) {
  return AddOp(OpKind::kSub, {input, other});
}

ValueId PlanBuilder::Mul(Operand input, Operand other) {
  return AddOp(OpKind::kMul, {input, other});
}

ValueId PlanBuilder::Div(Operand input, Operand other) {
  return AddOp(OpKind::kDiv, {input, other});
}

ValueId PlanBuilder::Minimum(Operand input, Operand other) {
  return AddOp(OpKind::kMinimum, {input, other});
}

ValueId PlanBuilder::Maximum(Operand input, Operand other) {
  return AddOp(OpKind::kMaximum, {input, other});
}

ValueId PlanBuilder::Cast(ValueId input, DataType dtype) {
  return AddOp(OpKind::kCast, {input}, CastAttributes{dtype});
}

ValueId PlanBuilder::Name(std::string_view name, ValueId value) {
  const int64_t op = int64_t{value.index} - kFirstOp;
  if (op >= 0 && op < static_cast<int64_t>(plan_.ops.size())) {
    plan_.ops[op].name = name;
  }
  return value;
}

void PlanBuilder::Output(ValueId value, std::optional<DataType> dtype) {
  plan_.outputs.push_back({value, dtype.value_or(DataType::kF32)});
  typed_outputs_.push_back(dtype.has_value());
}

void PlanBuilder::Renumber(ValueId& value) const {
  if (value.index < kFirstOp) return;
  value.index += static_cast<int32_t>(plan_.inputs.size()) - kFirstOp;
}

absl::StatusOr<Plan> PlanBuilder::Build() const {
  Plan plan = plan_;
  for (Op& op : plan.ops) {
    for (Operand& operand : op.operands) {
      if (ValueId* value = std::get_if<ValueId>(&operand)) Renumber(*value);
    }
  }
  for (PlanOutput& output : plan.outputs) Renumber(output.value);

  const absl::StatusOr<std::vector<TensorDesc>> values = ValidatePlan(plan);
  if (!values.ok()) return values.status();
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    if (typed_outputs_[i]) continue;
    plan.outputs[i].dtype = (*values)[plan.outputs[i].value.index].dtype;
  }
  return plan;
}

}  // namespace kiln
