#include "proto/artifact_converter.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <limits>

#include "jit/plan/errors.h"
#include "proto/plan_converter.h"

namespace kiln {
namespace {

void ModuleToProto(const Module& module, v1::Module* message) {
  message->set_cubin(module.cubin);
  message->set_sha256(module.sha256);
  message->set_source(module.source);
  for (const KernelEntry& entry : module.entries) {
    v1::KernelEntry* const added = message->add_entries();
    added->set_symbol(entry.symbol);
    added->set_registers(entry.registers);
    added->set_static_shared_bytes(entry.static_shared_bytes);
    added->set_max_dynamic_shared_bytes(entry.max_dynamic_shared_bytes);
    added->set_local_bytes(entry.local_bytes);
  }
}

void SlotToProto(const Slot& slot, v1::Slot* message) {
  *message->mutable_desc() = ToProto(slot.desc);
  message->set_min_bytes(slot.min_bytes);
  message->set_align(slot.align);
  message->set_role(static_cast<v1::Slot::Role>(slot.role));
}

void TensorMapToProto(const Arg& arg, v1::TensorMap* message) {
  const TensorMapSpec& map = arg.tensor_map;
  message->set_slot(arg.slot);
  message->set_offset_bytes(arg.offset_bytes);
  message->set_data_type(map.data_type);
  message->mutable_global_dim()->Add(map.global_dim.begin(),
                                     map.global_dim.end());
  message->mutable_global_strides()->Add(map.global_strides.begin(),
                                         map.global_strides.end());
  message->mutable_box_dim()->Add(map.box_dim.begin(), map.box_dim.end());
  message->mutable_element_strides()->Add(map.element_strides.begin(),
                                          map.element_strides.end());
  message->set_interleave(map.interleave);
  message->set_swizzle(map.swizzle);
  message->set_l2_promotion(map.l2_promotion);
  message->set_oob_fill(map.oob_fill);
}

void ArgToProto(const Arg& arg, v1::Arg* message) {
  switch (arg.kind) {
    case ArgKind::kSlot:
      message->mutable_slot()->set_slot(arg.slot);
      message->mutable_slot()->set_offset_bytes(arg.offset_bytes);
      return;
    case ArgKind::kWorkspace:
      message->set_workspace_offset(arg.offset_bytes);
      return;
    case ArgKind::kPrepared:
      message->set_prepared_offset(arg.offset_bytes);
      return;
    case ArgKind::kConstant:
      message->set_constant(arg.bytes);
      return;
    case ArgKind::kTensorMap:
      TensorMapToProto(arg, message->mutable_tensor_map());
      return;
  }
}

void Dim3ToProto(const std::array<uint32_t, 3>& dim, v1::Dim3* message) {
  message->set_x(dim[0]);
  message->set_y(dim[1]);
  message->set_z(dim[2]);
}

void StepToProto(const Step& step, v1::Step* message) {
  message->set_module(step.module);
  message->set_entry(step.entry);
  Dim3ToProto(step.grid, message->mutable_grid());
  Dim3ToProto(step.block, message->mutable_block());
  Dim3ToProto(step.cluster, message->mutable_cluster());
  message->set_dynamic_shared_bytes(step.dynamic_shared_bytes);
  message->set_cooperative(step.cooperative);
  message->set_nonportable_cluster(step.nonportable_cluster);
  message->set_programmatic_stream_serialization(
      step.programmatic_stream_serialization);
  for (const Arg& arg : step.args) ArgToProto(arg, message->add_args());
}

void VariantToProto(const Variant& variant, v1::Variant* message) {
  v1::Requirements* const required = message->mutable_requirements();
  required->set_min_sm_count(variant.requires_.min_sm_count);
  required->set_cooperative(variant.requires_.cooperative);
  required->set_cluster_size(variant.requires_.cluster_size);
  required->set_shared_optin_bytes(variant.requires_.shared_optin_bytes);
  message->set_workspace_bytes(variant.workspace_bytes);
  message->set_prepared_bytes(variant.prepared_bytes);
  message->mutable_prepared_from()->Add(variant.prepared_from.begin(),
                                        variant.prepared_from.end());
  for (const ZeroRange& range : variant.zero) {
    v1::ZeroRange* const added = message->add_zero();
    added->set_area(static_cast<v1::Area>(range.area));
    added->set_offset_bytes(range.offset_bytes);
    added->set_size_bytes(range.size_bytes);
    added->set_when(static_cast<v1::ZeroRange::When>(range.when));
  }
  for (const Step& s : variant.prepare) StepToProto(s, message->add_prepare());
  for (const Step& s : variant.launch) StepToProto(s, message->add_launch());
}

}  // namespace

v1::Artifact ToProto(const Artifact& artifact) {
  v1::Artifact message;
  message.set_format(artifact.format);
  message.set_key(artifact.key);
  message.set_key_text(artifact.key_text);
  *message.mutable_canonical_plan() = ToProto(artifact.canonical_plan);
  message.set_target(ToString(artifact.target));
  for (const Module& module : artifact.modules) {
    ModuleToProto(module, message.add_modules());
  }
  for (const Slot& slot : artifact.slots) {
    SlotToProto(slot, message.add_slots());
  }
  for (const Variant& variant : artifact.variants) {
    VariantToProto(variant, message.add_variants());
  }
  return message;
}

std::string SerializeArtifact(const Artifact& artifact) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  ToProto(artifact).SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

absl::StatusOr<Artifact> ParseArtifact(std::string_view bytes) {
  v1::Artifact message;
  // Protocol buffers count bytes in an int.
  const bool fits =
      bytes.size() <= static_cast<size_t>(std::numeric_limits<int>::max());
  if (!fits ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidField("artifact", "The bytes are no artifact.",
                        std::to_string(bytes.size()) + " bytes",
                        "one serialised kiln.v1.Artifact");
  }
  return FromProto(message);
}

}  // namespace kiln
