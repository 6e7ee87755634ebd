#include "server/served_request.h"

namespace kiln {

absl::StatusOr<ServedRequest> ServedRequestOf(const Front& front,
                                              const v1::Plan& plan,
                                              const std::string& target,
                                              v1::Grade grade,
                                              const std::string& variant) {
  const absl::StatusOr<KeyedRequestTable::Shared> untuned =
      front.requests->Get(plan, target, grade);
  if (!untuned.ok()) return untuned.status();
  ServedRequest served = {*untuned, front.tunings->Find((*untuned)->key)};
  std::string wanted = variant;
  if (wanted.empty() && served.tuning) wanted = served.tuning->variant();
  if (wanted.empty() || wanted == served.keyed->request.variant) return served;

  const absl::StatusOr<KeyedRequestTable::Shared> tuned =
      front.requests->Get(plan, target, grade, wanted);
  if (!tuned.ok()) return tuned.status();
  served.keyed = *tuned;
  return served;
}

}  // namespace kiln
