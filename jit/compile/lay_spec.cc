#include "jit/compile/lay_spec.h"

#include <limits>
#include <utility>

#include "jit/compile/conv_constants.h"
#include "jit/compile/rounding.h"
#include "jit/compile/spec_text.h"

namespace kiln {
namespace {

constexpr int kThreads = 512;
constexpr int64_t kPositions = 32;  // of a cluster
constexpr int64_t kStep = kThreads / (kPositions / 4);
constexpr int64_t kMostRounds = 6;

// For each thread.
int64_t RoundsOf(int64_t channels, int64_t cluster) {
  return CeilDiv(CeilDiv(channels, cluster), kStep);
}

// Blocks that share `runs` of positions: few channels each, so that a thread
// keeps what it reads and there are blocks for all multiprocessors.
int64_t ClusterFor(int64_t channels, int64_t runs) {
  constexpr int64_t kFewestRounds = 2;
  constexpr int64_t kManyBlocks = 400;
  int64_t cluster = 1;
  for (; cluster < 8; cluster *= 2) {
    const int64_t rounds = RoundsOf(channels, cluster);
    if (rounds > kMostRounds) continue;
    if (rounds <= kFewestRounds || runs * cluster >= kManyBlocks) break;
  }
  return cluster;
}

Place FactorsBehind(Place lines, const LaidLines& laid) {
  lines.offset_bytes += laid.elements() * 2;
  return lines;
}

Place FactorsOfResults(const Kernel& kernel) {
  return FactorsBehind(*kernel.laid_results, kernel.conv->laid_results());
}

}  // namespace

KernelSpec MakeLaySpec(const Schedule& schedule, const Kernel& kernel) {
  const ConvGeometry& geometry = *kernel.conv;
  const Dims4& input = geometry.problem.input;
  const Node& node = schedule.lowered.nodes[kernel.group.anchor];
  KernelTensors tensors(schedule, kernel);
  tensors.Read(ValueOf(node.operands[0]), "input");
  AddLaidLines(kernel, true, &tensors);
  const bool scales_results = kernel.laid_results.has_value();
  if (scales_results) {
    tensors.Add({"bounds", "float", false, *kernel.bounds});
    tensors.Add({"result_factors", "float", true, FactorsOfResults(kernel)});
    AddResultScales(kernel, true, &tensors);
  }
  KernelSpec spec;
  spec.formula = {"lays down the input of " + node.text};
  spec.source_file = "lay_lines.cu";
  // Threads reach past the last channel.
  const int64_t reached = (input[0] * input[1] + kStep) * input[2] *
                          geometry.line_pitch() * geometry.input_parts();
  spec.index =
      reached > std::numeric_limits<int32_t>::max() ? "long long" : "int";
  spec.constants = ShapeText("Input", {input.begin(), input.end()});
  spec.constants.push_back(IntText("kLinePitch", geometry.line_pitch()));
  spec.constants.push_back(IntText("kInputParts", geometry.input_parts()));
  spec.constants.push_back(BoolText("kScalesResults", scales_results));
  spec.tensors = tensors.list();
  spec.has_element = false;
  EntrySpec entry{"kiln_lay_lines", "kiln::LayLines", kThreads};
  const int64_t runs =
      input[0] * CeilDiv(input[2] * geometry.line_pitch(), kPositions);
  const int64_t cluster = ClusterFor(input[1], runs);
  spec.constants.push_back(IntText("kCluster", cluster));
  spec.constants.push_back(
      BoolText("kKeepsNumbers", RoundsOf(input[1], cluster) <= kMostRounds));
  entry.grid[0] = static_cast<uint32_t>(runs * cluster);
  entry.cluster[0] = static_cast<uint32_t>(cluster);
  entry.awaits_itself = true;
  spec.entries.push_back(std::move(entry));
  return spec;
}

void AddLaidLines(const Kernel& kernel, bool writes, KernelTensors* tensors) {
  tensors->Add(
      {writes ? "lines" : "input", "kiln::Float16", writes, *kernel.laid});
  tensors->Add({"factors", "float", writes,
                FactorsBehind(*kernel.laid, kernel.conv->laid_lines())});
}

void AddResultScales(const Kernel& kernel, bool writes,
                     KernelTensors* tensors) {
  Place scales = FactorsOfResults(kernel);
  scales.offset_bytes += kernel.conv->laid_results().pixels() * 4;
  tensors->Add({"result_scales", "kiln::BFloat16", writes, scales});
}

}  // namespace kiln
