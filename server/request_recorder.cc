#include "server/request_recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "jit/plan/plan_text.h"
#include "server/request_prefix.h"

namespace kiln {

RequestRecorder::RequestRecorder(FileDescriptor file)
    : file_(std::move(file)) {}

absl::StatusOr<std::unique_ptr<RequestRecorder>> RequestRecorder::Open(
    const std::string& path) {
  FileDescriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file.valid()) {
    return absl::FailedPreconditionError(
        fmt::format("The manifest {} cannot be opened: {}", path,
                    std::generic_category().message(errno)));
  }
  return std::unique_ptr<RequestRecorder>(new RequestRecorder(std::move(file)));
}

void RequestRecorder::Record(const KeyedRequest& keyed,
                             const std::string& variant,
                             const std::string& request_id) {
  {
    MutexLock lock(mutex_);
    if (!seen_.insert(keyed.key + variant).second) return;
  }
  const Plan& plan = keyed.request.plan.plan;
  nlohmann::json line = {
      {"plan", ToText(plan)},
      {"targets", {ToString(keyed.request.target)}},
      {"grade", plan.grade == Grade::kTf32 ? "tf32" : "fp32"}};
  if (!variant.empty()) line["variant"] = variant;
  const std::string text = line.dump() + "\n";
  // One write, so that lines of several daemons do not mix.
  if (write(file_.get(), text.data(), text.size()) < 0) {
    spdlog::warn("{}The request could not be recorded",
                 RequestPrefix(request_id));
  }
}

}  // namespace kiln
