#include "jit/compile/split_rows.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "jit/compile/conv_constants.h"
#include "jit/compile/linear_cost.h"
#include "jit/compile/linear_tile.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

constexpr int64_t kThreads = 256;
constexpr int64_t kBytes = 2;  // of a part
constexpr int64_t kFactorBytes = 4;
constexpr int64_t kAtOnce = 4;        // numbers of a thread
constexpr int64_t kFewestRounds = 4;  // for which it pays to have more threads

constexpr int kWeights = 1;  // the operand

// Threads that have a row: a power of two.
int64_t LanesOf(const SplitRows& split) {
  const int64_t accesses = CeilDiv(split.numbers, kLinearChunk) * kLinearChunk /
                           (kAtOnce * kFewestRounds);
  return std::min<int64_t>(
      kThreads,
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(accesses))));
}

// Of a layer that reads parts; else null.
const LinearTile* SplitTile(const Node& node) {
  const LinearTile* const tile =
      node.direct ? node.direct->As<LinearTile>() : nullptr;
  return tile != nullptr && tile->halves > 0 ? tile : nullptr;
}

const LinearTile* SplitTileOf(const Schedule& schedule, const Kernel& kernel) {
  if (kernel.group.anchor < 0 || !(kernel.computes() || kernel.splits())) {
    return nullptr;
  }
  return SplitTile(schedule.lowered.nodes[kernel.group.anchor]);
}

// Whether `node` is such a layer, and reads `value` as its input alone.
bool IsSplitInputOf(const Node& node, int value, int halves) {
  const LinearTile* const tile = SplitTile(node);
  return tile != nullptr && tile->halves == halves &&
         ValueOf(node.operands[0]) == value &&
         std::none_of(
             node.operands.begin() + 1, node.operands.end(),
             [&](const Operand& operand) { return ValueOf(operand) == value; });
}

Place FactorsOf(Place parts, const SplitRows& split) {
  parts.offset_bytes += split.bytes_of_parts();
  return parts;
}

void AddSplit(const SplitRows& split, const Place& place, const char* parts,
              const char* factors, bool writes, KernelTensors* tensors) {
  tensors->Add({parts, "kiln::Float16", writes, place});
  tensors->Add({factors, "float", writes, FactorsOf(place, split)});
}

}  // namespace

int64_t SplitRows::bytes_of_parts() const {
  return halves * rows * CeilDiv(numbers, kLinearChunk) * kLinearChunk * kBytes;
}

int64_t SplitRows::bytes() const {
  return bytes_of_parts() + rows * kFactorBytes;
}

bool MaySplitResult(const Schedule& schedule, const Kernel& kernel, int value) {
  const LoweredPlan& plan = schedule.lowered;
  const LinearTile* const tile = SplitTileOf(schedule, kernel);
  const std::vector<int> nodes = kernel.group.Nodes();
  const auto is_inside = [&](int node) {
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  };
  const TensorDesc& desc = plan.values[value].desc;
  if (tile == nullptr || !kernel.computes() ||
      !is_inside(plan.values[value].producer) || desc.dtype != DataType::kF32 ||
      desc.dims != kernel.group.domain || desc.dims[1] % kSplitVector != 0 ||
      !HasAllResults(*tile, desc.dims[1])) {
    return false;
  }
  const bool is_seen =
      std::any_of(plan.outputs.begin(), plan.outputs.end(),
                  [&](const PlanOutput& output) {
                    return output.value.index == value;
                  }) ||
      std::any_of(plan.values.begin(), plan.values.end(),
                  [&](const auto& other) { return other.view_of == value; });
  if (is_seen) return false;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const Node& node = plan.nodes[i];
    if (!node.Reads(value) || is_inside(static_cast<int>(i))) continue;
    if (!IsSplitInputOf(node, value, tile->halves)) return false;
  }
  return true;
}

std::optional<SplitRows> SplitRowsOf(const Schedule& schedule,
                                     const Kernel& kernel, int operand) {
  const LinearTile* const tile = SplitTileOf(schedule, kernel);
  if (tile == nullptr) return std::nullopt;
  const Node& node = schedule.lowered.nodes[kernel.group.anchor];
  const Dims& dims =
      schedule.lowered.values[ValueOf(node.operands[operand])].desc.dims;
  return SplitRows{dims[0], dims[1] * dims[2] * dims[3], tile->halves,
                   operand == kWeights};
}

std::optional<SplitRows> SplitResultOf(const Schedule& schedule,
                                       const Kernel& kernel) {
  if (!kernel.split_result) return std::nullopt;
  const Dims& dims = schedule.lowered.values[*kernel.split_result].desc.dims;
  return SplitRows{dims[0], dims[1], SplitTileOf(schedule, kernel)->halves};
}

KernelSpec MakeSplitSpec(const Schedule& schedule, const Kernel& kernel) {
  const int operand = kernel.operand;
  const SplitRows split = SplitRowsOf(schedule, kernel, operand).value();
  const Node& node = schedule.lowered.nodes[kernel.group.anchor];
  KernelTensors tensors(schedule, kernel);
  tensors.Read(ValueOf(node.operands[operand]), "matrix");
  AddSplit(split, *kernel.split[operand], "parts", "factors", true, &tensors);
  KernelSpec spec;
  spec.formula = {fmt::format("splits the {} of {}",
                              operand == kWeights ? "weights" : "input",
                              node.text)};
  spec.source_file = "split_rows.cu";
  spec.index = "int";
  const int64_t lanes = LanesOf(split);
  spec.constants = {IntText("kThreads", kThreads),
                    IntText("kLanes", lanes),
                    IntText("kRows", split.rows),
                    IntText("kNumbers", split.numbers),
                    IntText("kHalves", split.halves),
                    BoolText("kHasOneSign", split.has_one_sign)};
  spec.tensors = tensors.list();
  spec.has_element = false;
  EntrySpec entry{"kiln_split_rows", "kiln::SplitRows",
                  static_cast<int>(kThreads)};
  entry.grid[0] = static_cast<uint32_t>(CeilDiv(split.rows, kThreads / lanes));
  spec.entries.push_back(std::move(entry));
  return spec;
}

void AddSplitOperands(const Schedule& schedule, const Kernel& kernel,
                      KernelTensors* tensors) {
  const SplitRows input = SplitRowsOf(schedule, kernel, 0).value();
  const SplitRows weight = SplitRowsOf(schedule, kernel, kWeights).value();
  tensors->Add({"input", "kiln::Float16", false, *kernel.split[0]});
  tensors->Add({"weight", "kiln::Float16", false, *kernel.split[kWeights]});
  AddSplit(input, *kernel.split[0], "input", "input_factors", false, tensors);
  AddSplit(weight, *kernel.split[kWeights], "weight", "weight_factors", false,
           tensors);
}

void AddSplitResult(const Schedule& schedule, const Kernel& kernel,
                    KernelTensors* tensors) {
  const int value = kernel.split_result.value();
  tensors->Keep(value);
  AddSplit(SplitResultOf(schedule, kernel).value(),
           schedule.homes[value].value(), "parts", "factors", true, tensors);
}

}  // namespace kiln
