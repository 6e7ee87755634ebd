#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "jit/artifact/digest.h"
#include "jit/plan/errors.h"
#include "jit/plan/validate.h"
#include "proto/artifact_checker.h"
#include "proto/artifact_converter.h"
#include "proto/known_fields.h"
#include "proto/plan_converter.h"

namespace kiln {
namespace {

bool IsDigest(std::string_view text) {
  return text.size() == 64 &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

KernelEntry EntryFrom(const v1::KernelEntry& message, const std::string& path,
                      ArtifactChecker* check) {
  check->Require(!message.symbol().empty(), path + ".symbol", "is empty", "",
                 "the name of a kernel");
  KernelEntry entry;
  entry.symbol = message.symbol();
  entry.registers =
      static_cast<int>(check->Size(path + ".registers", message.registers()));
  entry.static_shared_bytes =
      check->Size(path + ".static_shared_bytes", message.static_shared_bytes());
  entry.max_dynamic_shared_bytes = check->Size(
      path + ".max_dynamic_shared_bytes", message.max_dynamic_shared_bytes());
  entry.local_bytes = check->Size(path + ".local_bytes", message.local_bytes());
  return entry;
}

Module ModuleFrom(const v1::Module& message, const std::string& path,
                  ArtifactChecker* check) {
  const std::string digest = Sha256Hex(message.cubin());
  check->Require(message.sha256() == digest, path + ".sha256",
                 "is not the digest of the cubin", message.sha256(), digest);
  Module module;
  module.cubin = message.cubin();
  module.sha256 = message.sha256();
  module.source = message.source();
  for (int i = 0; i < message.entries_size(); ++i) {
    module.entries.push_back(EntryFrom(
        message.entries(i), fmt::format("{}.entries[{}]", path, i), check));
  }
  return module;
}

// Bytes of the tensor, or -1 if the extents break the limits of a plan.
int64_t CheckedBytes(const TensorDesc& desc) {
  if (desc.dims.size() > static_cast<size_t>(kMaxRank)) return -1;
  __int128 bytes = ElementSize(desc.dtype);
  for (int64_t dim : desc.dims) {
    if (dim < 1 || dim > kMaxDim) return -1;
    bytes *= dim;
  }
  return bytes <= kMaxTensorBytes ? static_cast<int64_t>(bytes) : -1;
}

Slot SlotFrom(const v1::Slot& message, const std::string& path,
              ArtifactChecker* check) {
  Slot slot;
  if (auto desc = FromProto(message.desc()); desc.ok()) {
    slot.desc = *desc;
  } else {
    check->Adopt(path, desc.status());
  }
  const int64_t bytes = CheckedBytes(slot.desc);
  check->Require(bytes > 0, path + ".desc.dims", "are out of range",
                 ToString(slot.desc),
                 fmt::format("rank 0 to {}, each 1 to {}, {} bytes", kMaxRank,
                             kMaxDim, kMaxTensorBytes));
  slot.min_bytes = check->Within(path + ".min_bytes", message.min_bytes(),
                                 bytes, kMaxTensorBytes);
  slot.align =
      check->Within(path + ".align", message.align(), 1, int64_t{1} << 30);
  check->Require((slot.align & (slot.align - 1)) == 0, path + ".align",
                 "is no power of two", fmt::format("{}", slot.align),
                 "a power of two");
  slot.role = check->Choice(path + ".role", message.role(), SlotRole::kOutput);
  return slot;
}

// Reads variants; what they refer to has been read before them.
class VariantReader {
 public:
  VariantReader(const Artifact& artifact, ArtifactChecker* check)
      : artifact_(artifact), check_(*check) {}

  Variant Read(const v1::Variant& message, const std::string& path) {
    variant_ = Variant();
    const v1::Requirements& required = message.requirements();
    const std::string at = path + ".requirements";
    variant_.requires_ = {
        static_cast<int>(
            check_.Size(at + ".min_sm_count", required.min_sm_count())),
        required.cooperative(),
        static_cast<int>(
            check_.Size(at + ".cluster_size", required.cluster_size())),
        check_.Size(at + ".shared_optin_bytes", required.shared_optin_bytes())};
    variant_.workspace_bytes =
        check_.Size(path + ".workspace_bytes", message.workspace_bytes());
    variant_.prepared_bytes =
        check_.Size(path + ".prepared_bytes", message.prepared_bytes());
    for (int i = 0; i < message.prepared_from_size(); ++i) {
      variant_.prepared_from.push_back(
          SlotIndex(fmt::format("{}.prepared_from[{}]", path, i),
                    message.prepared_from(i)));
    }
    for (int i = 0; i < message.zero_size(); ++i) {
      variant_.zero.push_back(
          Zero(message.zero(i), fmt::format("{}.zero[{}]", path, i)));
    }
    for (int i = 0; i < message.prepare_size(); ++i) {
      variant_.prepare.push_back(
          ReadStep(message.prepare(i), fmt::format("{}.prepare[{}]", path, i)));
    }
    for (int i = 0; i < message.launch_size(); ++i) {
      variant_.launch.push_back(
          ReadStep(message.launch(i), fmt::format("{}.launch[{}]", path, i)));
    }
    return variant_;
  }

 private:
  ZeroRange Zero(const v1::ZeroRange& message, const std::string& path) {
    ZeroRange range;
    range.area = check_.Choice(path + ".area", message.area(), Area::kPrepared);
    range.when = check_.Choice(path + ".when", message.when(), ZeroWhen::kOnce);
    const int64_t area = range.area == Area::kWorkspace
                             ? variant_.workspace_bytes
                             : variant_.prepared_bytes;
    range.offset_bytes =
        check_.Within(path + ".offset_bytes", message.offset_bytes(), 0, area);
    range.size_bytes = check_.Within(path + ".size_bytes", message.size_bytes(),
                                     0, area - range.offset_bytes);
    return range;
  }

  Step ReadStep(const v1::Step& message, const std::string& path) {
    Step step;
    step.module = check_.Index(path + ".module", message.module(),
                               static_cast<int>(artifact_.modules.size()));
    const bool known = step.module >= 0 && static_cast<size_t>(step.module) <
                                               artifact_.modules.size();
    const size_t entries =
        known ? artifact_.modules[step.module].entries.size() : 0;
    step.entry = check_.Index(path + ".entry", message.entry(),
                              static_cast<int>(entries));
    step.grid = Extents(message.grid(), path + ".grid");
    step.block = Extents(message.block(), path + ".block");
    step.cluster = Extents(message.cluster(), path + ".cluster");
    step.dynamic_shared_bytes = check_.Size(path + ".dynamic_shared_bytes",
                                            message.dynamic_shared_bytes());
    step.cooperative = message.cooperative();
    step.nonportable_cluster = message.nonportable_cluster();
    step.programmatic_stream_serialization =
        message.programmatic_stream_serialization();
    for (int i = 0; i < message.args_size(); ++i) {
      step.args.push_back(
          ReadArg(message.args(i), fmt::format("{}.args[{}]", path, i)));
    }
    return step;
  }

  std::array<uint32_t, 3> Extents(const v1::Dim3& message,
                                  const std::string& path) {
    check_.Require(
        message.x() > 0 && message.y() > 0 && message.z() > 0, path,
        "has an extent of 0",
        fmt::format("{}, {}, {}", message.x(), message.y(), message.z()),
        "three extents of at least 1");
    return {message.x(), message.y(), message.z()};
  }

  Arg ReadArg(const v1::Arg& message, const std::string& path) {
    Arg arg;
    switch (message.arg_case()) {
      case v1::Arg::kSlot:
        arg.kind = ArgKind::kSlot;
        SetSlot(message.slot(), path + ".slot", &arg);
        break;
      case v1::Arg::kWorkspaceOffset:
        arg.kind = ArgKind::kWorkspace;
        arg.offset_bytes =
            Offset(path + ".workspace_offset", message.workspace_offset(),
                   variant_.workspace_bytes);
        break;
      case v1::Arg::kPreparedOffset:
        arg.kind = ArgKind::kPrepared;
        arg.offset_bytes =
            Offset(path + ".prepared_offset", message.prepared_offset(),
                   variant_.prepared_bytes);
        break;
      case v1::Arg::kConstant:
        arg.kind = ArgKind::kConstant;
        arg.bytes = message.constant();
        check_.Require(!arg.bytes.empty(), path + ".constant", "is empty",
                       "0 bytes", "at least 1 byte");
        break;
      case v1::Arg::kTensorMap:
        arg.kind = ArgKind::kTensorMap;
        SetSlot(message.tensor_map(), path + ".tensor_map", &arg);
        arg.tensor_map = Map(message.tensor_map(), path + ".tensor_map");
        break;
      case v1::Arg::ARG_NOT_SET:
        check_.Require(false, path, "is not set", "nothing",
                       "a slot, an offset, a constant or a tensor map");
        break;
    }
    return arg;
  }

  // `message` is a SlotAddress or a TensorMap.
  template <typename Message>
  void SetSlot(const Message& message, const std::string& path, Arg* arg) {
    arg->slot = SlotIndex(path + ".slot", message.slot());
    const bool known = arg->slot >= 0 &&
                       static_cast<size_t>(arg->slot) < artifact_.slots.size();
    arg->offset_bytes =
        Offset(path + ".offset_bytes", message.offset_bytes(),
               known ? artifact_.slots[arg->slot].min_bytes : 0);
  }

  TensorMapSpec Map(const v1::TensorMap& message, const std::string& path) {
    const int rank = message.global_dim_size();
    check_.Within(path + ".global_dim", rank, 1, 5);
    check_.Require(
        message.global_strides_size() == rank - 1 &&
            message.box_dim_size() == rank &&
            message.element_strides_size() == rank,
        path, "has extents of different ranks",
        fmt::format("{} strides, {} box, {} element strides",
                    message.global_strides_size(), message.box_dim_size(),
                    message.element_strides_size()),
        fmt::format("{}, {}, {}", rank - 1, rank, rank));
    TensorMapSpec map;
    map.data_type = message.data_type();
    map.global_dim = {message.global_dim().begin(), message.global_dim().end()};
    map.global_strides = {message.global_strides().begin(),
                          message.global_strides().end()};
    map.box_dim = {message.box_dim().begin(), message.box_dim().end()};
    map.element_strides = {message.element_strides().begin(),
                           message.element_strides().end()};
    map.interleave = message.interleave();
    map.swizzle = message.swizzle();
    map.l2_promotion = message.l2_promotion();
    map.oob_fill = message.oob_fill();
    return map;
  }

  int SlotIndex(const std::string& path, int index) {
    return check_.Index(path, index, static_cast<int>(artifact_.slots.size()));
  }

  // An address may point at the first byte of an empty area, not behind one.
  int64_t Offset(const std::string& path, int64_t offset, int64_t size) {
    return check_.Within(path, offset, 0, std::max<int64_t>(size, 1) - 1);
  }

  const Artifact& artifact_;
  ArtifactChecker& check_;
  Variant variant_;  // the one that is read
};

// A device must always find a variant, and the cpu target has none.
void CheckVariants(const Artifact& artifact, ArtifactChecker* check) {
  if (artifact.target.is_cpu()) {
    check->Require(artifact.variants.empty() && artifact.modules.empty(),
                   "variants", "do not belong to the cpu target",
                   fmt::format("{}", artifact.variants.size()), "none");
    return;
  }
  check->Require(!artifact.variants.empty() &&
                     artifact.variants.back().requires_ == Requirements(),
                 "variants", "leave devices without one",
                 fmt::format("{}", artifact.variants.size()),
                 "at least one, the last of which requires nothing");
}

void ReadHeader(const v1::Artifact& message, Artifact* artifact,
                ArtifactChecker* check) {
  check->Require(IsDigest(message.key()), "key", "is no digest", message.key(),
                 "64 hexadecimal digits");
  artifact->format = message.format();
  artifact->key = message.key();
  artifact->key_text = message.key_text();
  if (auto plan = FromProto(message.canonical_plan()); plan.ok()) {
    artifact->canonical_plan = *std::move(plan);
  } else {
    check->Adopt("canonical_plan", plan.status());
  }
  const auto target = ParseTarget(message.target());
  if (target.ok()) artifact->target = *target;
  // A device name or a bare architecture is a target, but not spelled out.
  check->Require(target.ok() && ToString(*target) == message.target(), "target",
                 "is no exact target", message.target(),
                 "cpu or sm_NN/<SM count>");
}

}  // namespace

absl::StatusOr<Artifact> FromProto(const v1::Artifact& message) {
  if (message.format() > kArtifactFormat) {
    return UnknownField("format", "is newer than this build",
                        fmt::format("{}", message.format()),
                        fmt::format("{}", kArtifactFormat));
  }
  if (auto s = CheckKnownFields(message, "artifact"); !s.ok()) return s;
  ArtifactChecker check;
  check.Within("format", message.format(), 1, kArtifactFormat);
  Artifact artifact;
  ReadHeader(message, &artifact, &check);
  for (int i = 0; i < message.modules_size(); ++i) {
    artifact.modules.push_back(
        ModuleFrom(message.modules(i), fmt::format("modules[{}]", i), &check));
  }
  for (int i = 0; i < message.slots_size(); ++i) {
    artifact.slots.push_back(
        SlotFrom(message.slots(i), fmt::format("slots[{}]", i), &check));
  }
  VariantReader reader(artifact, &check);
  for (int i = 0; i < message.variants_size(); ++i) {
    artifact.variants.push_back(
        reader.Read(message.variants(i), fmt::format("variants[{}]", i)));
  }
  CheckVariants(artifact, &check);
  if (!check.status().ok()) return check.status();
  return artifact;
}

}  // namespace kiln
