#ifndef KILN_PROTO_PLAN_CONVERTER_H_
#define KILN_PROTO_PLAN_CONVERTER_H_

#include "absl/status/statusor.h"
#include "jit/plan/plan.h"
#include "kiln/v1/plan.pb.h"

namespace kiln {

// Total: any message gives a plan or INVALID_ARGUMENT with a field path
// (UNIMPLEMENTED for enum numbers and fields this build does not know). Fills
// PyTorch's defaults in; optional operands at the end of a list may be left
// out. The plan is not validated.
absl::StatusOr<Plan> FromProto(const v1::Plan& message);

// Total: any plan, valid or not. FromProto(ToProto(p)) equals any valid `p`
// with its defaults filled in.
v1::Plan ToProto(const Plan& plan);

// Unspecified is fp32. UNIMPLEMENTED: a number this build does not know.
absl::StatusOr<Grade> FromProto(v1::Grade grade);

v1::TensorDesc ToProto(const TensorDesc& desc);
absl::StatusOr<TensorDesc> FromProto(const v1::TensorDesc& message);

}  // namespace kiln

#endif  // KILN_PROTO_PLAN_CONVERTER_H_
