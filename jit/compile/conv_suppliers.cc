#include "jit/compile/conv_suppliers.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "jit/compile/rounding.h"
#include "jit/compile/split_rows.h"
#include "jit/compile/workspace.h"

namespace kiln {
namespace {

bool PacksLike(const Kernel& a, const Kernel& b) {
  return a.conv && b.conv && a.group.anchor == b.group.anchor &&
         a.conv->packing() == b.conv->packing();
}

int OperandOf(const Schedule& schedule, const Kernel& conv, int operand) {
  return ValueOf(schedule.lowered.nodes[conv.group.anchor].operands[operand]);
}

class Supplying {
 public:
  Supplying(const CanonicalPlan& plan, Schedule* schedule)
      : plan_(plan), schedule_(*schedule) {}

  void Run() {
    const std::vector<Kernel> kernels = std::exchange(schedule_.kernels, {});
    for (const Kernel& kernel : kernels) {
      const bool is_packed =
          std::any_of(kernels.begin(), kernels.end(), [&](const Kernel& other) {
            return other.ReadsPacked() && PacksLike(other, kernel);
          });
      if (is_packed && PackerOf(schedule_, kernel) == nullptr) {
        AddPacker(kernel);
      }
      if (kernel.LaysResults()) AddBounder(kernel);
      if (kernel.TakesLaidLines() && !kernel.conv->problem.input_is_laid &&
          LayerOf(schedule_, kernel) == nullptr) {
        AddLayer(kernel);
      }
      for (const int operand : {0, 1}) AddSplitter(kernel, operand);
      schedule_.kernels.push_back(kernel);
    }
  }

 private:
  // Works at each launch where weights are an input or computed.
  void AddPacker(const Kernel& kernel) {
    Kernel packer;
    packer.group.anchor = kernel.group.anchor;
    packer.conv = kernel.conv;
    packer.role = KernelRole::kPacks;
    packer.prepares = IsParameter(OperandOf(schedule_, kernel, 1));
    if (packer.prepares) {
      packer.packed = TakePrepared(kernel.conv->packed_bytes());
    }
    schedule_.kernels.push_back(std::move(packer));
  }

  // All that it reads are parameters (lay_results.h).
  void AddBounder(const Kernel& kernel) {
    Kernel bounder;
    bounder.group.anchor = kernel.group.anchor;
    bounder.group.epilogue = kernel.group.epilogue;
    bounder.conv = kernel.conv;
    bounder.role = KernelRole::kBounds;
    bounder.prepares = true;
    bounder.bounds = TakePrepared(kBoundBytes);
    schedule_.kernels.push_back(std::move(bounder));
  }

  // Unless the layer reads it as it lies, or there is one.
  void AddSplitter(const Kernel& kernel, int operand) {
    const std::optional<SplitRows> rows =
        SplitRowsOf(schedule_, kernel, operand);
    if (!rows || SplitterOf(schedule_, kernel, operand) != nullptr) return;
    if (operand == 0 && IsLeftSplit(InputOf(schedule_, kernel))) return;
    Kernel splitter;
    splitter.group.anchor = kernel.group.anchor;
    splitter.role = KernelRole::kSplits;
    splitter.operand = operand;
    splitter.prepares = IsParameter(OperandOf(schedule_, kernel, operand));
    if (splitter.prepares) {
      splitter.split[operand] = TakePrepared(rows->bytes());
    }
    schedule_.kernels.push_back(std::move(splitter));
  }

  // By the layer that makes it, if that can.
  bool IsLeftSplit(int value) {
    for (Kernel& maker : schedule_.kernels) {
      if (!maker.split_result && MaySplitResult(schedule_, maker, value)) {
        maker.split_result = value;
        return true;
      }
    }
    return false;
  }

  bool IsParameter(int operand) const {
    const int viewed = schedule_.lowered.values[operand].view_of;
    const int value = viewed >= 0 ? viewed : operand;
    return value < schedule_.lowered.num_inputs &&
           plan_.plan.inputs[value].role == InputRole::kParameter;
  }

  Place TakePrepared(int64_t bytes) {
    const Place place = {-1, schedule_.prepared_bytes, DataType::kF32,
                         Area::kPrepared};
    schedule_.prepared_bytes += RoundUp(bytes, kWorkspaceAlign);
    return place;
  }

  void AddLayer(const Kernel& kernel) {
    Kernel layer;
    layer.group.anchor = kernel.group.anchor;
    layer.conv = kernel.conv;
    layer.role = KernelRole::kLays;
    schedule_.kernels.push_back(std::move(layer));
  }

  const CanonicalPlan& plan_;
  Schedule& schedule_;
};

}  // namespace

void AddSuppliers(const CanonicalPlan& plan, Schedule* schedule) {
  Supplying(plan, schedule).Run();
}

const Kernel* PackerOf(const Schedule& schedule, const Kernel& reader) {
  for (const Kernel& kernel : schedule.kernels) {
    if (kernel.packs() && PacksLike(kernel, reader)) return &kernel;
  }
  return nullptr;
}

const Kernel* LayerOf(const Schedule& schedule, const Kernel& reader) {
  for (const Kernel& kernel : schedule.kernels) {
    if (kernel.lays() &&
        InputOf(schedule, kernel) == InputOf(schedule, reader) &&
        kernel.conv->LaysLike(*reader.conv)) {
      return &kernel;
    }
  }
  return nullptr;
}

const Kernel* SplitterOf(const Schedule& schedule, const Kernel& reader,
                         int operand) {
  const std::optional<SplitRows> rows = SplitRowsOf(schedule, reader, operand);
  if (!rows) return nullptr;
  const int value = OperandOf(schedule, reader, operand);
  for (const Kernel& kernel : schedule.kernels) {
    const bool leaves_it =
        kernel.splits()
            ? SplitRowsOf(schedule, kernel, kernel.operand) == rows &&
                  OperandOf(schedule, kernel, kernel.operand) == value
            : operand == 0 && kernel.split_result == value;
    if (leaves_it) return &kernel;
  }
  return nullptr;
}

const Kernel* BounderOf(const Schedule& schedule, const Kernel& kernel) {
  if (!kernel.LaysResults() && !kernel.lays()) return nullptr;
  for (const Kernel& other : schedule.kernels) {
    if (other.bounds_results() && other.group.anchor == kernel.group.anchor) {
      return &other;
    }
  }
  return nullptr;
}

int InputOf(const Schedule& schedule, const Kernel& conv) {
  return OperandOf(schedule, conv, 0);
}

}  // namespace kiln
