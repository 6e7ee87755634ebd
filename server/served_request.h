#ifndef KILN_SERVER_SERVED_REQUEST_H_
#define KILN_SERVER_SERVED_REQUEST_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/front.h"
#include "server/keyed_request.h"

namespace kiln {

// A request with its variant, and the tuning of its plan that is stored, if
// any: the variant's reason where the client gave none.
struct ServedRequest {
  KeyedRequestTable::Shared keyed;
  TuningStore::Shared tuning;
};

// As `variant` says; where that is empty, the winner of the stored tuning, or
// "auto". A stored tuning is that of the same plan, grade, target, compiler
// and toolchain.
//
// Errors: those of MakeKeyedRequest.
absl::StatusOr<ServedRequest> ServedRequestOf(const Front& front,
                                              const v1::Plan& plan,
                                              const std::string& target,
                                              v1::Grade grade,
                                              const std::string& variant);

}  // namespace kiln

#endif  // KILN_SERVER_SERVED_REQUEST_H_
