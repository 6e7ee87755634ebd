#ifndef KILN_JIT_PLAN_ATTRIBUTE_FIELDS_H_
#define KILN_JIT_PLAN_ATTRIBUTE_FIELDS_H_

#include <string_view>
#include <type_traits>

#include "jit/plan/op.h"

namespace kiln {

// What plan text calls the attributes of an op: `visit(name, field, needed)`
// for each that the op has, in the order in which text writes them. `needed`
// ones have no default; fields that only another op of the same kind of
// attributes has stand at their defaults (ValidatePlan). `a` is an alternative
// of Attributes, const or not:
//
//   std::visit([&](auto& a) { VisitFields(op.kind, a, visit); },
//              op.attributes);

template <typename A, typename Visitor>
void VisitFields([[maybe_unused]] OpKind kind, [[maybe_unused]] A& a,
                 [[maybe_unused]] Visitor&& visit) {
  using Type = std::remove_const_t<A>;
  if constexpr (std::is_same_v<Type, ConvAttributes>) {
    visit("stride", a.stride, false);
    visit("padding", a.padding, false);
    if (kind == OpKind::kConvTranspose2d) {
      visit("output_padding", a.output_padding, false);
    }
    visit("dilation", a.dilation, false);
    visit("groups", a.groups, false);
  } else if constexpr (std::is_same_v<Type, GroupNormAttributes>) {
    visit("num_groups", a.num_groups, true);
    visit("eps", a.eps, false);
  } else if constexpr (std::is_same_v<Type, BatchNormAttributes>) {
    visit("eps", a.eps, false);
  } else if constexpr (std::is_same_v<Type, PoolAttributes>) {
    visit("kernel_size", a.kernel_size, true);
    visit("stride", a.stride, false);
    visit("padding", a.padding, false);
    const bool averages = kind == OpKind::kAvgPool2d;
    if (!averages) visit("dilation", a.dilation, false);
    visit("ceil_mode", a.ceil_mode, false);
    if (averages) {
      visit("count_include_pad", a.count_include_pad, false);
      visit("divisor_override", a.divisor_override, false);
    }
  } else if constexpr (std::is_same_v<Type, ReduceAttributes>) {
    visit("dim", a.dim, false);
    visit("keepdim", a.keepdim, false);
  } else if constexpr (std::is_same_v<Type, SoftmaxAttributes>) {
    visit("dim", a.dim, true);
  } else if constexpr (std::is_same_v<Type, LeakyReluAttributes>) {
    visit("negative_slope", a.negative_slope, false);
  } else if constexpr (std::is_same_v<Type, GeluAttributes>) {
    visit("approximate", a.approximate, false);
  } else if constexpr (std::is_same_v<Type, ClampAttributes>) {
    const bool hardtanh = kind == OpKind::kHardtanh;
    visit(hardtanh ? "min_val" : "min", a.min, false);
    visit(hardtanh ? "max_val" : "max", a.max, false);
  } else if constexpr (std::is_same_v<Type, SoftplusAttributes>) {
    visit("beta", a.beta, false);
    visit("threshold", a.threshold, false);
  } else if constexpr (std::is_same_v<Type, EluAttributes>) {
    visit("alpha", a.alpha, false);
  } else if constexpr (std::is_same_v<Type, CastAttributes>) {
    visit("dtype", a.dtype, true);
  }
}

}  // namespace kiln

#endif  // KILN_JIT_PLAN_ATTRIBUTE_FIELDS_H_
