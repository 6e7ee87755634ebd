#include "jit/compile/compile_plan.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "jit/artifact/digest.h"
#include "jit/compile/errors.h"
#include "jit/compile/kernel_spec.h"
#include "jit/compile/nvrtc_compiler.h"
#include "jit/compile/ptxas_log.h"
#include "jit/compile/schedule.h"
#include "jit/compile/specialize.h"
#include "kernel_sources/kernel_sources.h"

namespace kiln {
namespace {

int64_t MicrosecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now() - start)
      .count();
}

std::vector<NvrtcCompiler::Header> Headers() {
  std::vector<NvrtcCompiler::Header> headers;
  for (const KernelSource& source : KernelSources()) {
    headers.push_back({std::string(source.name), std::string(source.text)});
  }
  return headers;
}

Slot MakeSlot(const TensorDesc& desc, SlotRole role) {
  return {desc, SizeBytes(desc), ElementSize(desc.dtype), role};
}

std::vector<Slot> SlotsOf(const CanonicalPlan& plan) {
  std::vector<Slot> slots;
  for (const PlanInput& input : plan.plan.inputs) {
    slots.push_back(MakeSlot(input.desc, input.role == InputRole::kParameter
                                             ? SlotRole::kParameter
                                             : SlotRole::kInput));
  }
  for (const PlanOutput& output : plan.plan.outputs) {
    slots.push_back(
        MakeSlot({output.dtype, plan.values[output.value.index].dims},
                 SlotRole::kOutput));
  }
  return slots;
}

Arg ArgOf(const KernelTensor& tensor) {
  Arg arg;
  if (tensor.place.slot >= 0) {
    arg.slot = tensor.place.slot;
  } else {
    arg.kind = tensor.place.area == Area::kPrepared ? ArgKind::kPrepared
                                                    : ArgKind::kWorkspace;
    arg.offset_bytes = tensor.place.offset_bytes;
  }
  return arg;
}

// The launch steps of one kernel, whose unit is module number `module`.
void AddSteps(const KernelSpec& spec, int module, std::vector<Step>* steps) {
  std::vector<Arg> args;
  for (const KernelTensor& tensor : spec.tensors) {
    args.push_back(ArgOf(tensor));
  }
  for (size_t i = 0; i < spec.entries.size(); ++i) {
    Step step;
    step.module = module;
    step.entry = static_cast<int>(i);
    step.grid = spec.entries[i].grid;
    step.block = {static_cast<uint32_t>(spec.entries[i].threads), 1, 1};
    step.cluster = spec.entries[i].cluster;
    step.dynamic_shared_bytes = spec.entries[i].dynamic_shared_bytes;
    step.cooperative = spec.entries[i].cooperative;
    step.args = args;
    steps->push_back(std::move(step));
  }
}

struct CompiledUnit {
  Module module;
  std::string spilling;  // symbol of an entry that does not fit in registers
  std::string log;
};

absl::StatusOr<CompiledUnit> CompileUnit(
    const KernelSpec& spec, const std::string& source, const std::string& arch,
    const std::vector<NvrtcCompiler::Header>& headers, NvrtcCompiler* nvrtc) {
  absl::StatusOr<NvrtcCompiler::Output> output =
      nvrtc->Compile(source, headers, arch);
  if (!output.ok()) return output.status();

  CompiledUnit unit;
  for (const EntrySpec& entry : spec.entries) {
    const auto usage = FindKernelUsage(output->log, entry.symbol);
    if (!usage) return NoKernelInfo(entry.symbol, source, output->log);
    if (usage->stack_bytes > 0) unit.spilling = entry.symbol;
    KernelEntry compiled;
    compiled.symbol = entry.symbol;
    compiled.registers = usage->registers;
    compiled.static_shared_bytes = usage->static_shared_bytes;
    compiled.max_dynamic_shared_bytes = entry.dynamic_shared_bytes;
    compiled.local_bytes = usage->stack_bytes;
    unit.module.entries.push_back(std::move(compiled));
  }
  unit.log = std::move(output->log);
  unit.module.cubin = std::move(output->cubin);
  unit.module.sha256 = Sha256Hex(unit.module.cubin);
  unit.module.source = source;
  return unit;
}

// Number of the module that `unit` shares; the number of modules if none.
size_t FindModule(const std::vector<Module>& modules, const std::string& unit) {
  const std::string identity = UnitIdentity(unit);
  return std::find_if(modules.begin(), modules.end(),
                      [&](const Module& module) {
                        return UnitIdentity(module.source) == identity;
                      }) -
         modules.begin();
}

// Compiles one plan's kernels into one artifact.
class Compilation {
 public:
  Compilation(const CompileRequest& request, NvrtcCompiler* nvrtc,
              Artifact* artifact)
      : arch_(request.target.arch),
        nvrtc_(nvrtc),
        headers_(Headers()),
        artifact_(artifact) {}

  absl::Status AddVariant(const Schedule& schedule) {
    Variant variant;
    variant.requires_ = schedule.requires_;
    variant.workspace_bytes = schedule.workspace_bytes;
    variant.prepared_bytes = schedule.prepared_bytes;
    variant.zero = schedule.zero;
    for (const Kernel& kernel : schedule.kernels) {
      const KernelSpec spec = MakeKernelSpec(schedule, kernel);
      const absl::StatusOr<int> module = ModuleOf(spec);
      if (!module.ok()) return module.status();
      if (kernel.prepares) AddPreparedFrom(spec, &variant);
      AddSteps(spec, *module,
               kernel.prepares ? &variant.prepare : &variant.launch);
    }
    artifact_->variants.push_back(std::move(variant));
    return absl::OkStatus();
  }

  int64_t nvrtc_us() const { return nvrtc_us_; }
  // Whether a variant failed because a kernel does not fit in registers.
  bool spills() const { return spills_; }

 private:
  static void AddPreparedFrom(const KernelSpec& spec, Variant* variant) {
    for (const KernelTensor& tensor : spec.tensors) {
      if (tensor.place.slot < 0) continue;
      variant->prepared_from.push_back(tensor.place.slot);
    }
  }

  // The number of the module with this kernel, compiled on first use.
  absl::StatusOr<int> ModuleOf(const KernelSpec& spec) {
    const std::string source = WriteUnit(spec);
    const size_t known = FindModule(artifact_->modules, source);
    if (known < artifact_->modules.size()) return static_cast<int>(known);

    absl::StatusOr<CompiledUnit> unit = Compile(spec, source);
    if (!unit.ok()) return unit.status();
    if (!unit->spilling.empty()) {
      spills_ = true;
      return Spills(unit->spilling, source, unit->log);
    }
    artifact_->modules.push_back(std::move(unit->module));
    return static_cast<int>(known);
  }

  absl::StatusOr<CompiledUnit> Compile(const KernelSpec& spec,
                                       const std::string& source) {
    const auto start = std::chrono::steady_clock::now();
    auto unit = CompileUnit(spec, source, arch_, headers_, nvrtc_);
    nvrtc_us_ += MicrosecondsSince(start);
    return unit;
  }

  const std::string arch_;
  NvrtcCompiler* const nvrtc_;
  const std::vector<NvrtcCompiler::Header> headers_;
  Artifact* const artifact_;
  int64_t nvrtc_us_ = 0;
  bool spills_ = false;
};

// Compiles the fastest schedules whose kernels fit in registers. Only the
// plain one always does, so the others are attempts.
absl::Status AddVariants(const CompileRequest& request, NvrtcCompiler* nvrtc,
                         CompilePlanTiming* spent, Artifact* artifact) {
  absl::Status status;
  for (const Room room : {Room::kTight, Room::kAmple, Room::kPlain}) {
    artifact->modules.clear();
    artifact->variants.clear();
    Compilation compilation(request, nvrtc, artifact);
    for (const Schedule& schedule :
         MakeSchedules(request.plan, request.target, room)) {
      status = compilation.AddVariant(schedule);
      if (!status.ok()) break;
    }
    spent->nvrtc_us += compilation.nvrtc_us();
    if (!compilation.spills()) return status;
  }
  return status;
}

}  // namespace

absl::StatusOr<Artifact> CompilePlan(const CompileRequest& request,
                                     NvrtcCompiler* nvrtc,
                                     CompilePlanTiming* timing) {
  if (request.variant != "auto") return UnknownVariant(request.variant);
  if (!request.target.is_cpu() && nvrtc == nullptr) {
    return NoNvrtc(request.target.arch);
  }
  const auto start = std::chrono::steady_clock::now();
  CompilePlanTiming spent;
  Artifact artifact;
  artifact.key_text = KeyText(request);
  artifact.key = KeyOf(artifact.key_text);
  artifact.canonical_plan = request.plan.plan;
  artifact.target = request.target;
  artifact.slots = SlotsOf(request.plan);
  if (!request.target.is_cpu()) {
    absl::Status status = AddVariants(request, nvrtc, &spent, &artifact);
    if (!status.ok()) return status;
  }
  spent.generate_us = MicrosecondsSince(start) - spent.nvrtc_us;
  if (timing != nullptr) *timing = spent;
  return artifact;
}

}  // namespace kiln
