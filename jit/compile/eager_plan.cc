#include "jit/compile/eager_plan.h"

#include <string>
#include <utility>
#include <vector>

#include "jit/compile/compile_units.h"
#include "jit/compile/eager_launches.h"
#include "jit/compile/errors.h"
#include "jit/compile/new_artifact.h"
#include "jit/compile/tuning.h"
#include "kernel_sources/kernel_sources.h"

namespace kiln {
namespace {

// The kernels' own text, so that people who look at an artifact's source see
// what runs.
std::string UnitText() {
  for (const KernelSource& source : KernelSources()) {
    if (source.name == "eager.cu") return std::string(source.text);
  }
  return "";
}

// relu of one number.
Plan SmallestPlan() {
  Plan plan;
  plan.inputs = {{"x", {DataType::kF32, {1}}, InputRole::kActivation}};
  plan.ops = {{OpKind::kRelu, "y", {ValueId{0}}, std::monostate()}};
  plan.outputs = {{ValueId{1}, DataType::kF32}};
  return plan;
}

}  // namespace

absl::StatusOr<Module> CompileEagerModule(const std::string& arch,
                                          NvrtcCompiler* nvrtc) {
  Unit unit;
  unit.source = UnitText();
  for (const char* symbol : EagerSymbols()) {
    EntrySpec entry;
    entry.symbol = symbol;
    unit.entries.push_back(std::move(entry));
  }
  absl::StatusOr<std::vector<CompiledUnit>> compiled =
      CompileUnits({std::move(unit)}, arch, nvrtc);
  if (!compiled.ok()) return compiled.status();
  CompiledUnit& only = compiled->front();
  if (!only.refused.empty()) {
    return Spills(only.refused, only.module.source, only.log);
  }
  return std::move(only.module);
}

CompileRequest EagerModuleRequest(const Target& target,
                                  const std::string& toolchain) {
  CompileRequest request;
  request.plan = *Canonicalize(SmallestPlan());  // valid, so it has a form
  request.target = target;
  request.toolchain = toolchain;
  request.variant = std::string(kEagerVariant);
  return request;
}

Artifact MakeEagerArtifact(const CompileRequest& request, Module module) {
  Artifact artifact = NewArtifact(request);
  artifact.modules.push_back(std::move(module));
  artifact.variants.push_back(MakeEagerLaunches(request.plan, request.target));
  return artifact;
}

}  // namespace kiln
