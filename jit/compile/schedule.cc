#include "jit/compile/schedule.h"

#include <algorithm>
#include <utility>

#include "jit/compile/workspace.h"

namespace kiln {
namespace {

class Scheduling {
 public:
  Scheduling(const CanonicalPlan& plan, const Target& target)
      : num_inputs_(static_cast<int>(plan.plan.inputs.size())),
        target_(target) {
    schedule_.lowered = Lower(plan);
    schedule_.homes.resize(schedule_.lowered.values.size());
    for (int i = 0; i < num_inputs_; ++i) {
      schedule_.homes[i] = Place{i, 0, plan.values[i].dtype};
    }
  }

  Schedule Run() && {
    for (KernelGroup& group : GroupNodes(schedule_.lowered)) {
      schedule_.kernels.emplace_back();
      schedule_.kernels.back().group = std::move(group);
    }
    AddCopies();
    for (size_t i = 0; i < schedule_.kernels.size(); ++i) {
      AddReduceGeometry(static_cast<int>(i));
      AddStores(static_cast<int>(i));
    }
    PlaceWorkspace();
    return std::move(schedule_);
  }

 private:
  // What lies in the workspace: a value's f32 copy, or partial states.
  struct Buffer {
    int kernel = 0;  // that fills it
    int value = -1;  // -1: partial states
    Lifetime lifetime;
  };

  const Node& NodeAt(int index) const { return schedule_.lowered.nodes[index]; }
  const TensorDesc& DescOf(int value) const {
    return schedule_.lowered.values[value].desc;
  }

  // Outputs that are inputs: a kernel without nodes, one for each input.
  void AddCopies() {
    for (int input = 0; input < num_inputs_; ++input) {
      if (OutputsOf(input).empty()) continue;
      Kernel copy;
      copy.group.domain = DescOf(input).dims;
      copy.stores = OutputsOf(input);
      schedule_.kernels.push_back(std::move(copy));
    }
  }

  std::vector<Store> OutputsOf(int value) const {
    std::vector<Store> stores;
    const std::vector<PlanOutput>& outputs = schedule_.lowered.outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].value.index != value) continue;
      const int slot = num_inputs_ + static_cast<int>(i);
      stores.push_back({value, {slot, 0, outputs[i].dtype}});
    }
    return stores;
  }

  void AddReduceGeometry(int index) {
    Kernel& kernel = schedule_.kernels[index];
    if (kernel.group.anchor < 0) return;
    const Node& node = NodeAt(kernel.group.anchor);
    if (node.kind != NodeKind::kReduce) return;

    const ReduceView view =
        ViewOf(node, DescOf(ValueOf(node.operands[0])).dims);
    kernel.reduce = ChooseReduceGeometry(view, target_.sm_count);
    if (kernel.reduce->splits == 1) return;
    kernel.partials = Place{};
    const int64_t states = view.outputs() * kernel.reduce->splits;
    buffers_.push_back(
        {index, -1, {index, index, states * ReducerStateBytes(node)}});
  }

  // Leaves in memory what later kernels or the caller need.
  void AddStores(int index) {
    const KernelGroup group = schedule_.kernels[index].group;
    if (group.anchor >= 0) AddStoresOf(index, NodeAt(group.anchor));
    for (const int node : group.epilogue) AddStoresOf(index, NodeAt(node));
  }

  void AddStoresOf(int index, const Node& node) {
    Kernel& kernel = schedule_.kernels[index];
    for (const int value : node.results) {
      for (const Store& store : OutputsOf(value)) {
        kernel.stores.push_back(store);
        if (store.place.dtype == DataType::kF32 && !schedule_.homes[value]) {
          schedule_.homes[value] = store.place;
        }
      }
      const int last_user = LastUser(value);
      if (last_user <= index || schedule_.homes[value]) continue;
      const TensorDesc desc{DataType::kF32, DescOf(value).dims};
      buffers_.push_back({index, value, {index, last_user, SizeBytes(desc)}});
    }
  }

  // The last kernel that uses a value; -1 if none does.
  int LastUser(int value) const {
    const auto uses = [&](int node) {
      const std::vector<Operand>& operands = NodeAt(node).operands;
      return std::any_of(
          operands.begin(), operands.end(),
          [&](const Operand& operand) { return ValueOf(operand) == value; });
    };
    for (int i = static_cast<int>(schedule_.kernels.size()) - 1; i >= 0; --i) {
      const KernelGroup& group = schedule_.kernels[i].group;
      if ((group.anchor >= 0 && uses(group.anchor)) ||
          std::any_of(group.prologue.begin(), group.prologue.end(), uses) ||
          std::any_of(group.epilogue.begin(), group.epilogue.end(), uses)) {
        return i;
      }
    }
    return -1;
  }

  void PlaceWorkspace() {
    std::vector<Lifetime> lifetimes;
    for (const Buffer& buffer : buffers_) lifetimes.push_back(buffer.lifetime);
    const WorkspaceLayout layout = LayOutWorkspace(lifetimes);
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const Place place{-1, layout.offsets[i], DataType::kF32};
      Kernel& kernel = schedule_.kernels[buffers_[i].kernel];
      if (buffers_[i].value < 0) {
        kernel.partials = place;
      } else {
        schedule_.homes[buffers_[i].value] = place;
        kernel.stores.push_back({buffers_[i].value, place});
      }
    }
    schedule_.workspace_bytes = layout.size_bytes;
  }

  const int num_inputs_;
  const Target& target_;
  Schedule schedule_;
  std::vector<Buffer> buffers_;
};

}  // namespace

Schedule MakePlainSchedule(const CanonicalPlan& plan, const Target& target) {
  return Scheduling(plan, target).Run();
}

std::vector<Schedule> MakeSchedules(const CanonicalPlan& plan,
                                    const Target& target) {
  return {MakePlainSchedule(plan, target)};
}

int64_t ReducerStateBytes(const Node& reduce) {
  switch (reduce.op) {
    case OpKind::kAmax:
    case OpKind::kAmin:
      return 4;
    case OpKind::kSum:
    case OpKind::kMean:
      return 8;
    default:  // logsumexp, and the statistics of softmax and group_norm
      return 12;
  }
}

}  // namespace kiln
