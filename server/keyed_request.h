#ifndef KILN_SERVER_KEYED_REQUEST_H_
#define KILN_SERVER_KEYED_REQUEST_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cache/single_flight_lru.h"
#include "jit/compile/compile_request.h"
#include "kiln/v1/plan.pb.h"

namespace kiln {

// A compile request and the key that it has. A value.
struct KeyedRequest {
  CompileRequest request;
  std::string key_text;
  std::string key;
};

// Converts, validates, canonicalises and hashes. `grade` unspecified: the
// plan's. `toolchain_id` stands in the key, except for the cpu target.
//
// Errors: those of FromProto, Canonicalize, ParseTarget and ParseTuning;
// INVALID_ARGUMENT for a variant of the cpu target; FAILED_PRECONDITION for a
// CUDA target without a toolchain.
absl::StatusOr<KeyedRequest> MakeKeyedRequest(
    const v1::Plan& plan, const std::string& target, v1::Grade grade,
    const std::string& toolchain_id, const std::string& variant = "auto");

// Keyed requests by the bytes of what was asked: the same plan comes again and
// again, and canonicalising takes longer (0.1 ms) than all the rest of a call
// that hits. Thread-safe.
class KeyedRequestTable {
 public:
  using Shared = std::shared_ptr<const KeyedRequest>;

  explicit KeyedRequestTable(std::string toolchain_id);

  // As MakeKeyedRequest.
  absl::StatusOr<Shared> Get(const v1::Plan& plan, const std::string& target,
                             v1::Grade grade,
                             const std::string& variant = "auto");

 private:
  const std::string toolchain_id_;
  SingleFlightLru<KeyedRequest> by_question_;
};

}  // namespace kiln

#endif  // KILN_SERVER_KEYED_REQUEST_H_
