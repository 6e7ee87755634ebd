#ifndef KILN_CLIENT_PLAN_BUILDER_H_
#define KILN_CLIENT_PLAN_BUILDER_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "jit/plan/plan.h"

namespace kiln {

// Writes a plan op by op:
//
//   PlanBuilder b;
//   ValueId x = b.Input("x", DataType::kF32, {2, 8, 16, 16});
//   ValueId w = b.Param("w", DataType::kF32, {64, 8, 3, 3});
//   ValueId y = b.Relu(b.Conv2d(x, w, {}, {.padding = {1, 1}}));
//   b.Output(b.Name("y", y));
//   absl::StatusOr<Plan> plan = b.Build();
//
// Names and semantics of the ops are PyTorch's (docs/ops.md); images are N x C
// x H x W. Nothing is checked before Build, so that a chain needs no error
// handling: values of another builder give a plan that Build refuses.
class PlanBuilder {
 public:
  using Optional = std::optional<ValueId>;

  // An input that changes with every call.
  ValueId Input(std::string_view name, DataType dtype, Dims dims);
  // An input that stays for many calls: weights, norm parameters.
  ValueId Param(std::string_view name, DataType dtype, Dims dims);

  // `weight` is [out_channels, channels / groups, kh, kw].
  ValueId Conv2d(ValueId input, ValueId weight, Optional bias = {},
                 const ConvAttributes& attributes = {});
  // `weight` is [channels, out_channels / groups, kh, kw].
  ValueId ConvTranspose2d(ValueId input, ValueId weight, Optional bias = {},
                          const ConvAttributes& attributes = {});
  // `weight` and `bias` are [channels].
  ValueId GroupNorm(ValueId input, const GroupNormAttributes& attributes,
                    Optional weight = {}, Optional bias = {});
  ValueId BatchNorm(ValueId input, ValueId running_mean, ValueId running_var,
                    Optional weight = {}, Optional bias = {},
                    const BatchNormAttributes& attributes = {});
  // Unlike PyTorch's, attributes.stride is {1, 1} unless given.
  ValueId MaxPool2d(ValueId input, const PoolAttributes& attributes);
  ValueId AvgPool2d(ValueId input, const PoolAttributes& attributes);

  ValueId Sum(ValueId input, const ReduceAttributes& attributes = {});
  ValueId Mean(ValueId input, const ReduceAttributes& attributes = {});
  ValueId Amax(ValueId input, const ReduceAttributes& attributes = {});
  ValueId Amin(ValueId input, const ReduceAttributes& attributes = {});
  ValueId LogSumExp(ValueId input, const ReduceAttributes& attributes = {});
  ValueId Softmax(ValueId input, int64_t dim);

  ValueId Relu(ValueId input);
  ValueId LeakyRelu(ValueId input, float negative_slope = 0.01f);
  ValueId Gelu(ValueId input,
               GeluApproximate approximate = GeluApproximate::kNone);
  ValueId Tanh(ValueId input);
  ValueId Sigmoid(ValueId input);
  ValueId Silu(ValueId input);
  ValueId Hardswish(ValueId input);
  ValueId Hardsigmoid(ValueId input);
  ValueId Hardtanh(ValueId input, float min = -1.0f, float max = 1.0f);
  // At least one of the two bounds.
  ValueId Clamp(ValueId input, std::optional<float> min,
                std::optional<float> max);
  ValueId Mish(ValueId input);
  ValueId Softplus(ValueId input, const SoftplusAttributes& attributes = {});
  ValueId Elu(ValueId input, float alpha = 1.0f);
  ValueId Abs(ValueId input);
  ValueId Neg(ValueId input);
  ValueId Exp(ValueId input);
  ValueId Sqrt(ValueId input);

  // Broadcast. One of the two may be a float constant.
  ValueId Add(Operand input, Operand other);
  ValueId Sub(Operand input, Operand other);
  ValueId Mul(Operand input, Operand other);
  ValueId Div(Operand input, Operand other);
  ValueId Minimum(Operand input, Operand other);
  ValueId Maximum(Operand input, Operand other);

  ValueId Cast(ValueId input, DataType dtype);

  // Names an op's result, for error messages and bindings by name; returns it.
  ValueId Name(std::string_view name, ValueId value);
  // Declares an output. Its type is PyTorch's promotion unless given.
  void Output(ValueId value, std::optional<DataType> dtype = {});
  void SetGrade(Grade grade) { plan_.grade = grade; }

  // Errors: those of ValidatePlan.
  absl::StatusOr<Plan> Build() const;

 private:
  ValueId AddInput(std::string_view name, DataType dtype, Dims dims,
                   InputRole role);
  ValueId AddOp(OpKind kind, std::vector<Operand> operands,
                Attributes attributes = {});
  // Inputs come before ops in a plan's numbering, but callers may mix the two:
  // until Build, op number i has the value kFirstOp + i.
  static constexpr int32_t kFirstOp = 1 << 20;
  void Renumber(ValueId& value) const;

  Plan plan_;
  std::vector<bool> typed_outputs_;  // those with a type of their own
};

}  // namespace kiln

#endif  // KILN_CLIENT_PLAN_BUILDER_H_
