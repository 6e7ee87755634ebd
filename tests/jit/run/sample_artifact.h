#ifndef KILN_TESTS_JIT_RUN_SAMPLE_ARTIFACT_H_
#define KILN_TESTS_JIT_RUN_SAMPLE_ARTIFACT_H_

#include <string>
#include <utility>
#include <vector>

#include "jit/artifact/artifact.h"

namespace kiln {

inline Arg SlotArg(int slot, int64_t offset_bytes = 0) {
  Arg arg;
  arg.kind = ArgKind::kSlot;
  arg.slot = slot;
  arg.offset_bytes = offset_bytes;
  return arg;
}

inline Arg AreaArg(ArgKind kind, int64_t offset_bytes = 0) {
  Arg arg;
  arg.kind = kind;
  arg.offset_bytes = offset_bytes;
  return arg;
}

inline Step StepOf(int entry, std::vector<Arg> args) {
  Step step;
  step.entry = entry;
  step.grid = {4, 1, 1};
  step.block = {256, 1, 1};
  step.args = std::move(args);
  return step;
}

// For the fake driver. Slots: 0 an input and 1 a parameter of 64 bytes, 2 an
// output of 128 bytes. Kernel "pack" prepares from the parameter, "run" reads
// input and prepared area and writes the output.
inline Artifact SampleArtifact() {
  Artifact artifact;
  artifact.key = std::string(64, 'a');
  artifact.target = {"sm_90a", 132};
  Module module;
  module.cubin = "kernel pack 8 8\nkernel run 8 8 8 8\n";
  module.entries = {{.symbol = "pack"}, {.symbol = "run"}};
  artifact.modules = {module};
  const TensorDesc small{DataType::kF32, {16}};
  const TensorDesc large{DataType::kF32, {32}};
  artifact.slots = {{small, 64, 16, SlotRole::kInput},
                    {small, 64, 16, SlotRole::kParameter},
                    {large, 128, 16, SlotRole::kOutput}};
  Variant variant;
  variant.workspace_bytes = 512;
  variant.prepared_bytes = 256;
  variant.prepared_from = {1};
  variant.zero = {{Area::kWorkspace, 0, 32, ZeroWhen::kEachLaunch}};
  variant.prepare = {StepOf(0, {SlotArg(1), AreaArg(ArgKind::kPrepared)})};
  variant.launch = {StepOf(1, {SlotArg(0), AreaArg(ArgKind::kPrepared),
                               AreaArg(ArgKind::kWorkspace, 128), SlotArg(2)})};
  artifact.variants = {variant};
  return artifact;
}

}  // namespace kiln

#endif  // KILN_TESTS_JIT_RUN_SAMPLE_ARTIFACT_H_
