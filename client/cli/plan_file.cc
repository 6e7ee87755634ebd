#include "client/cli/plan_file.h"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <filesystem>

#include "client/cli/file_bytes.h"
#include "jit/artifact/target.h"
#include "jit/plan/errors.h"
#include "jit/plan/plan_text.h"
#include "jit/plan/validate.h"
#include "proto/plan_converter.h"

namespace kiln::cli {
namespace {

// Of a request, 1 MiB; JSON takes more than what it becomes.
constexpr int64_t kMaxPlanFileBytes = int64_t{16} << 20;

// The first line of protobuf's message, with the text that it points at.
std::string JsonProblem(const std::string& message) {
  const size_t end = message.find('\n');
  if (end == std::string::npos) return message;
  const std::string place =
      message.substr(end + 1, message.find('\n', end + 1) - end - 1);
  if (place.empty()) return message.substr(0, end);
  return fmt::format("{} Near: {}", message.substr(0, end), place);
}

absl::StatusOr<Plan> FromJson(std::string_view text) {
  v1::Plan message;
  const auto parsed = google::protobuf::util::JsonStringToMessage(
      {text.data(), text.size()}, &message);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        "It is not the JSON of a kiln.v1.Plan: " +
        JsonProblem({parsed.message().data(), parsed.message().size()}));
  }
  return FromProto(message);
}

absl::Status Prefixed(const std::string& name, const absl::Status& status) {
  const absl::Status prefixed(
      status.code(),
      fmt::format("{}: {}", name, std::string(status.message())));
  return WithDetail(prefixed, DetailOf(status));
}

}  // namespace

absl::StatusOr<Plan> ParsePlan(const std::string& name, std::string_view text,
                               bool json) {
  const absl::StatusOr<Plan> plan = json ? FromJson(text) : ParsePlanText(text);
  if (!plan.ok()) return Prefixed(name, plan.status());
  const auto values = ValidatePlan(*plan);
  if (!values.ok()) return Prefixed(name, values.status());
  return plan;
}

absl::StatusOr<Plan> LoadPlan(const std::string& path) {
  const absl::StatusOr<std::string> text =
      ReadFile(path, "a plan", kMaxPlanFileBytes);
  if (!text.ok()) return text.status();
  return ParsePlan(path, *text, path.ends_with(".json"));
}

std::string StemOf(const std::string& path) {
  return path == "-" ? "plan" : std::filesystem::path(path).stem().string();
}

absl::StatusOr<std::vector<std::string>> ResolveTargets(
    const std::vector<std::string>& targets,
    std::vector<std::string>& remarks) {
  std::vector<std::string> resolved;
  for (const std::string& text : targets) {
    const absl::StatusOr<Target> target = ParseTarget(text);
    if (!target.ok()) return target.status();
    resolved.push_back(ToString(*target));
    if (text == target->arch && !target->is_cpu()) {
      remarks.push_back(
          fmt::format("{} is taken as {}", text, resolved.back()));
    }
  }
  return resolved;
}

absl::StatusOr<std::vector<std::string>> ResolveTargets(
    const std::vector<std::string>& targets, const Terminal& terminal) {
  std::vector<std::string> remarks;
  auto resolved = ResolveTargets(targets, remarks);
  if (!resolved.ok()) return resolved;
  for (const std::string& remark : remarks) terminal.Note(remark);
  return resolved;
}

}  // namespace kiln::cli
