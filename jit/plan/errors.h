#ifndef KILN_JIT_PLAN_ERRORS_H_
#define KILN_JIT_PLAN_ERRORS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace kiln {

// What a failure says beside its message; empty fields do not apply. Travels
// inside the status and, on the wire, as kiln.v1.ErrorDetail.
struct ErrorDetail {
  std::string field;  // path: "ops[3].operands[0]"
  std::string value;  // what was given
  std::string limit;  // what is allowed
  std::string hint;   // what to do
  std::string compile_log;
  std::string generated_source;

  friend bool operator==(const ErrorDetail&, const ErrorDetail&) = default;
};

// `status`, which must not be ok, with `detail` attached.
absl::Status WithDetail(absl::Status status, const ErrorDetail& detail);

// What WithDetail attached; empty fields if nothing was.
ErrorDetail DetailOf(const absl::Status& status);

// INVALID_ARGUMENT: "<field>: <problem> (got <value>, allowed: <limit>)", with
// the three in the detail.
absl::Status InvalidField(std::string_view field, std::string_view problem,
                          std::string_view value, std::string_view limit);

// UNIMPLEMENTED, the same form.
absl::Status UnknownField(std::string_view field, std::string_view problem,
                          std::string_view value, std::string_view limit);

}  // namespace kiln

#endif  // KILN_JIT_PLAN_ERRORS_H_
