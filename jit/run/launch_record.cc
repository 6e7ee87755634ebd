#include "jit/run/launch_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "jit/run/driver_api.h"

namespace kiln {
namespace {

absl::Status Malformed(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(
      fmt::format("The launch record is malformed at {}: {}.", path, what));
}

absl::Status CheckOffset(const std::string& path, int64_t offset,
                         int64_t limit) {
  if (offset >= 0 && offset < std::max<int64_t>(limit, 1)) {
    return absl::OkStatus();
  }
  return Malformed(
      path, fmt::format("the offset lies outside ({} of {})", offset, limit));
}

absl::Status CheckIndex(const std::string& path, int index, size_t count) {
  if (index >= 0 && static_cast<size_t>(index) < count) {
    return absl::OkStatus();
  }
  return Malformed(path, fmt::format("no such index ({} of {})", index, count));
}

absl::Status CheckTensorMap(const std::string& path, const TensorMapSpec& map) {
  const size_t rank = map.global_dim.size();
  if (rank < 1 || rank > 5) {
    return Malformed(path, fmt::format("the rank is {} (1 to 5)", rank));
  }
  if (map.global_strides.size() != rank - 1 || map.box_dim.size() != rank ||
      map.element_strides.size() != rank) {
    return Malformed(path, "the extents have different ranks");
  }
  return absl::OkStatus();
}

absl::Status CheckArg(const std::string& path, const Artifact& artifact,
                      const Variant& variant, const Arg& arg) {
  switch (arg.kind) {
    case ArgKind::kWorkspace:
      return CheckOffset(path, arg.offset_bytes, variant.workspace_bytes);
    case ArgKind::kPrepared:
      return CheckOffset(path, arg.offset_bytes, variant.prepared_bytes);
    case ArgKind::kConstant:
      if (arg.bytes.empty()) return Malformed(path, "the constant is empty");
      return absl::OkStatus();
    case ArgKind::kSlot:
    case ArgKind::kTensorMap:
      break;
  }
  absl::Status status = CheckIndex(path, arg.slot, artifact.slots.size());
  if (!status.ok()) return status;
  status =
      CheckOffset(path, arg.offset_bytes, artifact.slots[arg.slot].min_bytes);
  if (status.ok() && arg.kind == ArgKind::kTensorMap) {
    status = CheckTensorMap(path, arg.tensor_map);
  }
  return status;
}

absl::Status CheckStep(const std::string& path, const Artifact& artifact,
                       const Variant& variant, const Step& step) {
  absl::Status status =
      CheckIndex(path + ".module", step.module, artifact.modules.size());
  if (!status.ok()) return status;
  const std::vector<KernelEntry>& entries =
      artifact.modules[step.module].entries;
  status = CheckIndex(path + ".entry", step.entry, entries.size());
  if (!status.ok()) return status;
  if (step.dynamic_shared_bytes < 0 ||
      step.dynamic_shared_bytes >
          entries[step.entry].max_dynamic_shared_bytes) {
    return Malformed(path + ".dynamic_shared_bytes",
                     fmt::format("more than the entry declares ({} of {})",
                                 step.dynamic_shared_bytes,
                                 entries[step.entry].max_dynamic_shared_bytes));
  }
  for (size_t i = 0; i < step.args.size() && status.ok(); ++i) {
    status = CheckArg(fmt::format("{}.args[{}]", path, i), artifact, variant,
                      step.args[i]);
  }
  return status;
}

absl::Status CheckZero(const std::string& path, const Variant& variant,
                       const ZeroRange& range) {
  const int64_t limit = range.area == Area::kWorkspace ? variant.workspace_bytes
                                                       : variant.prepared_bytes;
  if (InRange(range.offset_bytes, range.size_bytes, limit)) {
    return absl::OkStatus();
  }
  return Malformed(path,
                   fmt::format("the range lies outside ({} + {} of {})",
                               range.offset_bytes, range.size_bytes, limit));
}

// A prepare step may run once for many launches, so it must not see what
// changes between them.
absl::Status CheckPrepareReads(const std::string& path,
                               const Artifact& artifact,
                               const Variant& variant) {
  for (const Step& step : variant.prepare) {
    for (const Arg& arg : step.args) {
      const bool reads_slot =
          arg.kind == ArgKind::kSlot || arg.kind == ArgKind::kTensorMap;
      if (!reads_slot) continue;
      if (artifact.slots[arg.slot].role != SlotRole::kParameter) {
        return Malformed(path,
                         fmt::format("slot {} is no parameter", arg.slot));
      }
      if (std::find(variant.prepared_from.begin(), variant.prepared_from.end(),
                    arg.slot) == variant.prepared_from.end()) {
        return Malformed(
            path, fmt::format("slot {} is not in prepared_from", arg.slot));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckVariant(const std::string& path, const Artifact& artifact,
                          const Variant& variant) {
  if (variant.workspace_bytes < 0 || variant.prepared_bytes < 0) {
    return Malformed(path, "an area has a negative size");
  }
  absl::Status status;
  for (size_t i = 0; i < variant.zero.size() && status.ok(); ++i) {
    status = CheckZero(fmt::format("{}.zero[{}]", path, i), variant,
                       variant.zero[i]);
  }
  for (size_t i = 0; i < variant.prepare.size() && status.ok(); ++i) {
    status = CheckStep(fmt::format("{}.prepare[{}]", path, i), artifact,
                       variant, variant.prepare[i]);
  }
  for (size_t i = 0; i < variant.launch.size() && status.ok(); ++i) {
    status = CheckStep(fmt::format("{}.launch[{}]", path, i), artifact, variant,
                       variant.launch[i]);
  }
  for (size_t i = 0; i < variant.prepared_from.size() && status.ok(); ++i) {
    status = CheckIndex(fmt::format("{}.prepared_from[{}]", path, i),
                        variant.prepared_from[i], artifact.slots.size());
  }
  if (!status.ok()) return status;
  return CheckPrepareReads(path + ".prepare", artifact, variant);
}

}  // namespace

absl::Status CheckLaunchRecord(const Artifact& artifact) {
  if (artifact.variants.empty()) {
    return Malformed("variants", "there is none");
  }
  for (size_t i = 0; i < artifact.variants.size(); ++i) {
    absl::Status status = CheckVariant(fmt::format("variants[{}]", i), artifact,
                                       artifact.variants[i]);
    if (!status.ok()) return status;
  }
  if (artifact.variants.back().requires_ != Requirements{}) {
    return Malformed("variants", "the last one has requirements");
  }
  return absl::OkStatus();
}

int64_t ParameterBytes(const Arg& arg) {
  switch (arg.kind) {
    case ArgKind::kConstant:
      return static_cast<int64_t>(arg.bytes.size());
    case ArgKind::kTensorMap:
      return sizeof(driver::TensorMap);
    case ArgKind::kSlot:
    case ArgKind::kWorkspace:
    case ArgKind::kPrepared:
      break;
  }
  return sizeof(driver::DevicePtr);
}

bool InRange(int64_t offset, int64_t size, int64_t limit) {
  return offset >= 0 && size >= 0 && offset <= limit && size <= limit - offset;
}

}  // namespace kiln
