#include "proto/artifact_converter.h"

#include <gmock/gmock.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "jit/artifact/digest.h"
#include "jit/plan/errors.h"
#include "jit/plan/plan_text.h"

namespace kiln {
namespace {

Arg SlotArg(int slot, int64_t offset_bytes) {
  Arg arg;
  arg.slot = slot;
  arg.offset_bytes = offset_bytes;
  return arg;
}

Arg AreaArg(ArgKind kind, int64_t offset_bytes) {
  Arg arg;
  arg.kind = kind;
  arg.offset_bytes = offset_bytes;
  return arg;
}

Arg ConstantArg(std::string bytes) {
  Arg arg;
  arg.kind = ArgKind::kConstant;
  arg.bytes = std::move(bytes);
  return arg;
}

Arg TensorMapArg() {
  Arg arg;
  arg.kind = ArgKind::kTensorMap;
  arg.slot = 0;
  arg.offset_bytes = 16;
  arg.tensor_map = {7, {32, 2}, {128}, {16, 2}, {1, 1}, 0, 3, 2, 1};
  return arg;
}

Module SampleModule() {
  Module module;
  module.cubin = std::string(
      "\x7f"
      "ELF\0code",
      9);
  module.sha256 = Sha256Hex(module.cubin);
  module.source = "// generated";
  module.entries = {{"kiln_step0", 40, 1024, 2048, 0},
                    {"kiln_step1", 255, 0, 0, 16}};
  return module;
}

Variant SampleVariant() {
  Variant variant;
  variant.requires_ = {132, true, 8, 232448};
  variant.workspace_bytes = 4096;
  variant.prepared_bytes = 512;
  variant.prepared_from = {1};
  variant.zero = {{Area::kWorkspace, 0, 64, ZeroWhen::kEachLaunch},
                  {Area::kPrepared, 256, 256, ZeroWhen::kOnce}};
  Step prepare;
  prepare.args = {SlotArg(1, 0), AreaArg(ArgKind::kPrepared, 0)};
  variant.prepare = {prepare};
  Step launch;
  launch.entry = 1;
  launch.grid = {132, 2, 1};
  launch.block = {256, 1, 1};
  launch.cluster = {2, 1, 1};
  launch.dynamic_shared_bytes = 1024;
  launch.cooperative = true;
  launch.nonportable_cluster = true;
  launch.programmatic_stream_serialization = true;
  launch.args = {SlotArg(0, 4),
                 AreaArg(ArgKind::kWorkspace, 4095),
                 AreaArg(ArgKind::kPrepared, 128),
                 ConstantArg(std::string(4, '\0')),
                 TensorMapArg(),
                 SlotArg(2, 0)};
  variant.launch = {launch};
  return variant;
}

// Every field of every type holds something other than its default.
Artifact SampleArtifact() {
  const auto plan = ParsePlanText(
      "grade tf32\n"
      "input x: f32[2,32]\n"
      "param p: f16[32]\n"
      "y = mul(x, p)\n"
      "output y: bf16\n");
  EXPECT_TRUE(plan.ok()) << plan.status();
  Artifact artifact;
  artifact.key_text = "key text\n";
  artifact.key = Sha256Hex(artifact.key_text);
  artifact.canonical_plan = *plan;
  artifact.target = {"sm_90a", 132};
  artifact.modules = {SampleModule()};
  artifact.slots = {{{DataType::kF32, {2, 32}}, 256, 16, SlotRole::kInput},
                    {{DataType::kF16, {32}}, 64, 2, SlotRole::kParameter},
                    {{DataType::kBF16, {2, 32}}, 128, 32, SlotRole::kOutput}};
  artifact.variants = {SampleVariant(), SampleVariant()};
  artifact.variants.back().requires_ = {};
  return artifact;
}

TEST(ArtifactConverterTest, RoundTripKeepsEveryField) {
  const Artifact artifact = SampleArtifact();
  const auto parsed = ParseArtifact(SerializeArtifact(artifact));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->format, artifact.format);
  EXPECT_EQ(parsed->key, artifact.key);
  EXPECT_EQ(parsed->key_text, artifact.key_text);
  EXPECT_EQ(ToText(parsed->canonical_plan), ToText(artifact.canonical_plan));
  EXPECT_EQ(parsed->target, artifact.target);
  EXPECT_EQ(parsed->modules, artifact.modules);
  EXPECT_EQ(parsed->slots, artifact.slots);
  EXPECT_EQ(parsed->variants, artifact.variants);
}

TEST(ArtifactConverterTest, BytesAreDeterministic) {
  const std::string bytes = SerializeArtifact(SampleArtifact());
  EXPECT_EQ(SerializeArtifact(SampleArtifact()), bytes);
  EXPECT_EQ(SerializeArtifact(*ParseArtifact(bytes)), bytes);
}

TEST(ArtifactConverterTest, CpuArtifactHasNoVariants) {
  Artifact artifact = SampleArtifact();
  artifact.target = {"cpu", 0};
  EXPECT_FALSE(FromProto(ToProto(artifact)).ok());
  artifact.modules.clear();
  artifact.variants.clear();
  const auto parsed = FromProto(ToProto(artifact));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(parsed->target.is_cpu());
}

struct Damage {
  std::string field;  // that the error names
  std::function<void(v1::Artifact&)> apply;
};

v1::Step& Launch(v1::Artifact& a) {
  return *a.mutable_variants(0)->mutable_launch(0);
}

const std::vector<Damage>& Damages() {
  static const auto& damages = *new std::vector<Damage>{
      {"format", [](auto& a) { a.set_format(0); }},
      {"key", [](auto& a) { a.set_key("abc"); }},
      {"target", [](auto& a) { a.set_target("h100-sxm"); }},
      {"target", [](auto& a) { a.set_target(""); }},
      {"canonical_plan.inputs[0].desc.dtype",
       [](auto& a) {
         a.mutable_canonical_plan()->mutable_inputs(0)->clear_desc();
       }},
      {"modules[0].sha256",
       [](auto& a) { a.mutable_modules(0)->mutable_cubin()->back() ^= 1; }},
      {"modules[0].sha256",
       [](auto& a) { a.mutable_modules(0)->clear_sha256(); }},
      {"modules[0].entries[1].symbol",
       [](auto& a) {
         a.mutable_modules(0)->mutable_entries(1)->clear_symbol();
       }},
      {"modules[0].entries[0].registers",
       [](auto& a) {
         a.mutable_modules(0)->mutable_entries(0)->set_registers(-1);
       }},
      {"modules[0].entries[0].local_bytes",
       [](auto& a) {
         a.mutable_modules(0)->mutable_entries(0)->set_local_bytes(-1);
       }},
      {"slots[0].desc.dtype",
       [](auto& a) { a.mutable_slots(0)->mutable_desc()->clear_dtype(); }},
      {"slots[0].desc.dims",
       [](auto& a) { a.mutable_slots(0)->mutable_desc()->set_dims(0, -2); }},
      {"slots[0].desc.dims",
       [](auto& a) {
         for (int i = 0; i < 2; ++i) {
           a.mutable_slots(0)->mutable_desc()->set_dims(i, 2147483647);
         }
       }},
      {"slots[1].min_bytes",
       [](auto& a) { a.mutable_slots(1)->set_min_bytes(63); }},
      {"slots[1].align", [](auto& a) { a.mutable_slots(1)->set_align(0); }},
      {"slots[1].align", [](auto& a) { a.mutable_slots(1)->set_align(24); }},
      {"slots[2].role", [](auto& a) { a.mutable_slots(2)->clear_role(); }},
      {"variants", [](auto& a) { a.clear_variants(); }},
      {"variants",
       [](auto& a) {
         a.mutable_variants(1)->mutable_requirements()->set_min_sm_count(1);
       }},
      {"variants[0].requirements.cluster_size",
       [](auto& a) {
         a.mutable_variants(0)->mutable_requirements()->set_cluster_size(-8);
       }},
      {"variants[0].workspace_bytes",
       [](auto& a) { a.mutable_variants(0)->set_workspace_bytes(-1); }},
      {"variants[0].prepared_from[0]",
       [](auto& a) { a.mutable_variants(0)->set_prepared_from(0, 3); }},
      {"variants[0].zero[0].area",
       [](auto& a) { a.mutable_variants(0)->mutable_zero(0)->clear_area(); }},
      {"variants[0].zero[0].when",
       [](auto& a) { a.mutable_variants(0)->mutable_zero(0)->clear_when(); }},
      {"variants[0].zero[1].offset_bytes",
       [](auto& a) {
         a.mutable_variants(0)->mutable_zero(1)->set_offset_bytes(INT64_MIN);
       }},
      {"variants[0].zero[1].size_bytes",
       [](auto& a) {
         a.mutable_variants(0)->mutable_zero(1)->set_size_bytes(257);
       }},
      {"variants[0].launch[0].module",
       [](auto& a) { Launch(a).set_module(1); }},
      {"variants[0].launch[0].entry", [](auto& a) { Launch(a).set_entry(2); }},
      {"variants[0].launch[0].entry", [](auto& a) { Launch(a).set_entry(-1); }},
      {"variants[0].launch[0].grid", [](auto& a) { Launch(a).clear_grid(); }},
      {"variants[0].launch[0].block",
       [](auto& a) { Launch(a).mutable_block()->set_z(0); }},
      {"variants[0].launch[0].cluster",
       [](auto& a) { Launch(a).mutable_cluster()->set_y(0); }},
      {"variants[0].launch[0].dynamic_shared_bytes",
       [](auto& a) { Launch(a).set_dynamic_shared_bytes(-1); }},
      {"variants[0].launch[0].args[0]",
       [](auto& a) { Launch(a).mutable_args(0)->Clear(); }},
      {"variants[0].launch[0].args[0].slot.slot",
       [](auto& a) { Launch(a).mutable_args(0)->mutable_slot()->set_slot(3); }},
      {"variants[0].launch[0].args[0].slot.offset_bytes",
       [](auto& a) {
         Launch(a).mutable_args(0)->mutable_slot()->set_offset_bytes(256);
       }},
      {"variants[0].launch[0].args[1].workspace_offset",
       [](auto& a) { Launch(a).mutable_args(1)->set_workspace_offset(4096); }},
      {"variants[0].launch[0].args[2].prepared_offset",
       [](auto& a) { Launch(a).mutable_args(2)->set_prepared_offset(-1); }},
      {"variants[0].launch[0].args[3].constant",
       [](auto& a) { Launch(a).mutable_args(3)->set_constant(""); }},
      {"variants[0].launch[0].args[4].tensor_map.slot",
       [](auto& a) {
         Launch(a).mutable_args(4)->mutable_tensor_map()->set_slot(-1);
       }},
      {"variants[0].launch[0].args[4].tensor_map",
       [](auto& a) {
         Launch(a).mutable_args(4)->mutable_tensor_map()->add_box_dim(1);
       }},
  };
  return damages;
}

// Each would send a runner outside the memory that it is given, or to a kernel
// that is not there.
TEST(ArtifactConverterTest, EveryDamageIsInvalidAndNamesItsField) {
  for (const Damage& damage : Damages()) {
    v1::Artifact message = ToProto(SampleArtifact());
    damage.apply(message);
    const absl::Status status = FromProto(message).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
        << damage.field;
    EXPECT_EQ(DetailOf(status).field, damage.field) << status;
  }
}

TEST(ArtifactConverterTest, WhatANewerBuildWroteIsUnimplemented) {
  const std::vector<Damage> damages = {
      {"format", [](auto& a) { a.set_format(kArtifactFormat + 1); }},
      {"slots[0].role",
       [](auto& a) {
         a.mutable_slots(0)->set_role(static_cast<v1::Slot::Role>(9));
       }},
      {"variants[0].zero[0].when",
       [](auto& a) {
         a.mutable_variants(0)->mutable_zero(0)->set_when(
             static_cast<v1::ZeroRange::When>(3));
       }},
      {"canonical_plan.ops[0].kind",
       [](auto& a) {
         a.mutable_canonical_plan()->mutable_ops(0)->set_kind(9999);
       }},
  };
  for (const Damage& damage : damages) {
    v1::Artifact message = ToProto(SampleArtifact());
    damage.apply(message);
    const absl::Status status = FromProto(message).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << damage.field;
    EXPECT_EQ(DetailOf(status).field, damage.field) << status;
  }
}

TEST(ArtifactConverterTest, UnknownFieldsAreRefusedAtEveryDepth) {
  const std::vector<std::function<google::protobuf::Message*(v1::Artifact&)>>
      holders = {
          [](auto& a) { return &a; },
          [](auto& a) { return a.mutable_slots(1); },
          [](auto& a) { return a.mutable_canonical_plan()->mutable_ops(0); },
          [](auto& a) {
            return Launch(a).mutable_args(4)->mutable_tensor_map();
          },
      };
  for (const auto& holder : holders) {
    v1::Artifact message = ToProto(SampleArtifact());
    google::protobuf::Message* const inner = holder(message);
    inner->GetReflection()->MutableUnknownFields(inner)->AddVarint(1000, 1);
    const absl::Status status =
        ParseArtifact(message.SerializeAsString()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  }
}

// Negative control: if what the parser of protocol buffers says is ignored,
// this test fails.
TEST(ArtifactConverterTest, TruncatedBytesAreRefused) {
  const std::string bytes = SerializeArtifact(SampleArtifact());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ParseArtifact(bytes.substr(0, size)).ok()) << size;
  }
}

// Whatever a flipped bit gives, it is an error or an artifact that is written
// and read again unchanged; never a crash.
//
// Negative control: if an address of the workspace is not written where its
// offset is 0, this test fails.
TEST(ArtifactConverterTest, FlippedBitsAreRefusedOrReadAsWritten) {
  const google::protobuf::LogSilencer silencer;  // of invalid UTF-8
  const std::string bytes = SerializeArtifact(SampleArtifact());
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] ^= static_cast<char>(1 << bit % 8);
    const auto parsed = ParseArtifact(flipped);
    if (!parsed.ok()) continue;
    const std::string again = SerializeArtifact(*parsed);
    const auto twice = ParseArtifact(again);
    ASSERT_TRUE(twice.ok()) << bit << ": " << twice.status();
    EXPECT_EQ(SerializeArtifact(*twice), again) << bit;
  }
}

// Negative control: if bytes that do not parse give an empty artifact, this
// test fails.
TEST(ArtifactConverterTest, RandomBytesAreRefused) {
  const google::protobuf::LogSilencer silencer;
  std::mt19937 source(2026);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(source() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(source());
    EXPECT_FALSE(ParseArtifact(bytes).ok()) << round;
  }
}

}  // namespace
}  // namespace kiln
