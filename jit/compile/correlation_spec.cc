#include "jit/compile/correlation_spec.h"

#include <string>
#include <utility>

#include "jit/compile/conv_constants.h"
#include "jit/compile/conv_fusion.h"
#include "jit/compile/conv_states.h"
#include "jit/compile/spec_text.h"

namespace kiln {
namespace {

constexpr int kCorrelatorThreads = 256;
constexpr int kStatesThreads = 1024;

Dims DimsOf(const Dims4& dims) { return {dims.begin(), dims.end()}; }

void AddTensors(const Schedule& schedule, const Kernel& kernel,
                KernelTensors* tensors) {
  const Node& conv = schedule.lowered.nodes[kernel.group.anchor];
  tensors->Read(ValueOf(conv.operands[0]), "input");
  tensors->Read(ValueOf(conv.operands[1]), "weight");
  if (ValueOf(conv.operands[2]) >= 0) {
    tensors->Read(ValueOf(conv.operands[2]), "bias");
  }
  tensors->Add({"partials", "Reducer", true, *kernel.partials});
  tensors->Add(
      {"correlations", "float", true, PlaceOfCorrelations(schedule, kernel)});
}

void AddEntries(const ConvProblem& problem, const Correlation& correlation,
                KernelSpec* spec) {
  EntrySpec correlate{"kiln_correlate", "kiln::Correlate", kCorrelatorThreads};
  correlate.grid[0] = static_cast<uint32_t>(
      problem.input[0] * correlation.column_blocks * correlation.strips);
  correlate.dynamic_shared_bytes = CorrelatorBytes(problem);
  correlate.min_blocks = kResidentCorrelators;
  spec->entries.push_back(std::move(correlate));
  EntrySpec states{"kiln_correlated_states", "kiln::LeaveCorrelatedStates",
                   kStatesThreads};
  states.grid[0] = static_cast<uint32_t>(problem.input[0]);
  states.dynamic_shared_bytes = CorrelatedStatesBytes(problem);
  states.awaits_itself = true;
  spec->entries.push_back(std::move(states));
}

}  // namespace

KernelSpec MakeCorrelationSpec(const Schedule& schedule, const Kernel& kernel) {
  const ConvProblem& problem = kernel.conv->problem;
  const Correlation& correlation = *kernel.correlation;
  const Node& conv = schedule.lowered.nodes[kernel.group.anchor];
  const Node& tail = schedule.lowered.nodes[kernel.group.tail];
  const int64_t channels = ChannelsOfState(tail, kernel.group.domain);
  KernelTensors tensors(schedule, kernel);
  AddTensors(schedule, kernel, &tensors);
  KernelSpec spec;
  for (const int node : kernel.group.Nodes()) {
    spec.formula.push_back(schedule.lowered.nodes[node].text);
  }
  AddEntries(problem, correlation, &spec);
  spec.source_file = "correlate.cu";
  spec.index = "int";
  spec.constants = ShapeText("Input", DimsOf(problem.input));
  for (const std::string& line : ShapeText("Output", DimsOf(problem.output))) {
    spec.constants.push_back(line);
  }
  for (const std::string& line :
       {PairText("Taps", problem.kernel), PairText("Padding", problem.padding),
        IntsText("kStrips", correlation.strips, "kColumnBlocks",
                 correlation.column_blocks),
        IntsText("kStatesOfImage", problem.output[1] / channels,
                 "kChannelsOfState", channels),
        IntsText("kCorrelatorBytes", spec.entries[0].dynamic_shared_bytes,
                 "kStatesBytes", spec.entries[1].dynamic_shared_bytes),
        std::string("using Reducer = kiln::Moments;")}) {
    spec.constants.push_back(line);
  }
  spec.tensors = tensors.list();
  const bool has_bias = ValueOf(conv.operands[2]) >= 0;
  spec.members = {
      "static __device__ float BiasOf(const Tensors& t, int channel) {",
      has_bias ? "  return kiln::Load(t.bias, channel);" : "  return 0.0f;",
      "}"};
  spec.has_element = false;
  return spec;
}

}  // namespace kiln
