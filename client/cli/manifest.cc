#include "client/cli/manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

#include "client/cli/file_bytes.h"
#include "client/cli/plan_file.h"
#include "client/cli/terminal.h"
#include "jit/artifact/digest.h"
#include "jit/plan/plan_text.h"

namespace kiln::cli {
namespace {

// Half a million plans of usual length; it is held as a whole.
constexpr int64_t kMaxManifestBytes = int64_t{256} << 20;
constexpr std::string_view kFields[] = {"plan", "targets", "grade", "variant"};

absl::Status BadLine(const std::string& name, std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", name, problem));
}

// Plan text has several lines or an output; a path has neither.
bool IsPlanText(const std::string& text) {
  return text.find('\n') != std::string::npos ||
         text.find("output ") != std::string::npos;
}

absl::StatusOr<Plan> PlanOf(const std::string& name, const std::string& folder,
                            const Json& line) {
  if (!line.contains("plan") || !line["plan"].is_string()) {
    return BadLine(name, "\"plan\" is missing or no string");
  }
  const std::string text = line["plan"];
  absl::StatusOr<Plan> plan =
      IsPlanText(text)
          ? ParsePlan(name, text, false)
          : LoadPlan((std::filesystem::path(folder) / text).string());
  if (!plan.ok() || !line.contains("grade")) return plan;
  if (line["grade"] == "fp32") {
    plan->grade = Grade::kFp32;
  } else if (line["grade"] == "tf32") {
    plan->grade = Grade::kTf32;
  } else {
    return BadLine(name, "\"grade\" is neither \"fp32\" nor \"tf32\"");
  }
  return plan;
}

// A field that is not known may be one that the work depends on.
absl::Status CheckFields(const std::string& name, const Json& line) {
  for (const auto& item : line.items()) {
    if (std::find(std::begin(kFields), std::end(kFields), item.key()) !=
        std::end(kFields)) {
      continue;
    }
    return BadLine(
        name, fmt::format("{} is no field of a manifest (allowed: {})",
                          Json(item.key()).dump(), fmt::join(kFields, ", ")));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> VariantOf(const std::string& name,
                                      const Json& line) {
  if (!line.contains("variant")) return std::string();
  if (!line["variant"].is_string()) {
    return BadLine(name, "\"variant\" is no string");
  }
  return line["variant"].get<std::string>();
}

absl::StatusOr<std::vector<std::string>> TargetsOf(const std::string& name,
                                                   const Json& line) {
  if (!line.contains("targets")) return std::vector<std::string>();
  std::vector<std::string> targets;
  if (!line["targets"].is_array()) {
    return BadLine(name, "\"targets\" is no array");
  }
  for (const Json& target : line["targets"]) {
    if (!target.is_string()) return BadLine(name, "a target is no string");
    targets.push_back(target);
  }
  return targets;
}

// One item for each target; one that failed if there is none to make.
void AddItems(const std::string& name, const absl::StatusOr<Plan>& plan,
              const std::vector<std::string>& targets,
              const std::string& variant, std::vector<WorkItem>& items) {
  if (!plan.ok()) {
    items.push_back({name, "", plan.status()});
    return;
  }
  std::vector<std::string> remarks;
  const auto resolved = ResolveTargets(targets, remarks);
  if (!resolved.ok()) {
    items.push_back({name, "", resolved.status()});
  } else if (resolved->empty()) {
    items.push_back({name, "", BadLine(name, "no target; give --target")});
  } else {
    for (const std::string& target : *resolved) {
      items.push_back({name, target, plan, variant});
    }
  }
}

void AddLine(const std::string& name, const std::string& folder,
             const std::string& text, const std::vector<std::string>& given,
             std::vector<WorkItem>& items) {
  const Json line = Json::parse(text, nullptr, false);
  if (!line.is_object()) {
    items.push_back({name, "", BadLine(name, "it is no JSON object")});
    return;
  }
  const auto targets = TargetsOf(name, line);
  const auto variant = VariantOf(name, line);
  for (const absl::Status& status :
       {CheckFields(name, line), targets.status(), variant.status()}) {
    if (status.ok()) continue;
    items.push_back({name, "", status});
    return;
  }
  AddItems(name, PlanOf(name, folder, line), given.empty() ? *targets : given,
           *variant, items);
}

}  // namespace

std::string WorkItem::Id() const {
  return Sha256Hex(ToText(*plan) + target + variant);
}

absl::StatusOr<std::vector<WorkItem>> LoadWork(
    const std::vector<std::string>& paths,
    const std::vector<std::string>& targets) {
  std::vector<WorkItem> items;
  for (const std::string& path : paths) {
    if (!path.ends_with(".jsonl")) {
      AddItems(path, LoadPlan(path), targets, "", items);
      continue;
    }
    const absl::StatusOr<std::string> manifest =
        ReadFile(path, "a manifest", kMaxManifestBytes);
    if (!manifest.ok()) return manifest.status();
    const std::string folder =
        std::filesystem::path(path).parent_path().string();
    std::istringstream lines(*manifest);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
      if (line.empty()) continue;
      AddLine(fmt::format("{}:{}", path, number), folder, line, targets, items);
    }
  }
  return items;
}

}  // namespace kiln::cli
