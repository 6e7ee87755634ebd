#ifndef KILN_PROTO_PLAN_ATTRIBUTES_CONVERTER_H_
#define KILN_PROTO_PLAN_ATTRIBUTES_CONVERTER_H_

#include <string>

#include "absl/status/statusor.h"
#include "jit/plan/op.h"
#include "jit/plan/op_table.h"
#include "kiln/v1/plan.pb.h"

namespace kiln {

// The attributes of `message`, an op of kind `info`, with PyTorch's defaults
// filled in. `path` is that of the op: "ops[3]". Errors: INVALID_ARGUMENT for
// attributes of another kind, a missing one that has no default and a wrong
// number of spatial entries; UNIMPLEMENTED for an enum number that this build
// does not know.
absl::StatusOr<Attributes> AttributesFromProto(const v1::Op& message,
                                               const OpInfo& info,
                                               const std::string& path);

// Sets the attributes of `message`; leaves it alone for monostate.
void AttributesToProto(const Attributes& attributes, v1::Op* message);

// UNIMPLEMENTED for a number that this build does not know, INVALID_ARGUMENT
// for unspecified.
absl::StatusOr<DataType> DataTypeFromProto(int number, const std::string& path);

}  // namespace kiln

#endif  // KILN_PROTO_PLAN_ATTRIBUTES_CONVERTER_H_
