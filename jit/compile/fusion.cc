#include "jit/compile/fusion.h"

#include <algorithm>
#include <utility>

#include "jit/compile/commute_pooling.h"
#include "jit/compile/pool_prologue.h"

namespace kiln {
namespace {

bool TakesPrologue(const Node& anchor) {
  if (anchor.kind == NodeKind::kReduce) return true;
  if (anchor.kind == NodeKind::kUnfold) return true;
  if (anchor.kind == NodeKind::kTurn) return true;
  return anchor.kind == NodeKind::kMosaic;
}

class Grouping {
 public:
  explicit Grouping(const LoweredPlan& plan)
      : plan_(plan), group_of_node_(plan.nodes.size(), -1) {}

  std::vector<KernelGroup> Run() && {
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      Place(static_cast<int>(i));
    }
    for (int group = static_cast<int>(groups_.size()) - 1; group >= 0;
         --group) {
      Absorb(group);
    }
    std::erase_if(groups_,
                  [](const KernelGroup& group) { return group.IsEmpty(); });
    return std::move(groups_);
  }

 private:
  const Dims& DimsOf(int value) const { return plan_.values[value].desc.dims; }

  // The last group that makes an operand of `node`; -1 if all are inputs.
  int LastProducer(const Node& node) const {
    int last = -1;
    for (const Operand& operand : node.operands) {
      const int value = ValueOf(operand);
      if (value < 0 || plan_.values[value].producer < 0) continue;
      last = std::max(last, group_of_node_[plan_.values[value].producer]);
    }
    return last;
  }

  // Statistics are no tensors of the plan; nothing is computed on them. Nor on
  // what is pooled before the statistics of the same values.
  bool TakesEpilogue(const KernelGroup& group, const Dims& dims) const {
    if (group.anchor >= 0) {
      const Node& anchor = plan_.nodes[group.anchor];
      if (anchor.results.size() > 1 || IsEarlyPooling(anchor)) return false;
    }
    return AlignDims(group.domain) == AlignDims(dims);
  }

  void Place(int index) {
    const Node& node = plan_.nodes[index];
    const Dims& dims = DimsOf(node.results[0]);
    int group = -1;
    if (node.kind == NodeKind::kPointwise) {
      const int last = LastProducer(node);
      if (last >= 0 && TakesEpilogue(groups_[last], dims)) group = last;
    }
    if (group < 0) {
      group = static_cast<int>(groups_.size());
      groups_.emplace_back();
      groups_.back().domain = dims;
    }
    group_of_node_[index] = group;
    if (node.kind == NodeKind::kPointwise) {
      groups_[group].epilogue.push_back(index);
    } else {
      groups_[group].anchor = index;
    }
  }

  std::vector<int> ResultsOf(const KernelGroup& group) const {
    std::vector<int> results;
    for (const int node : group.epilogue) {
      results.push_back(plan_.nodes[node].results[0]);
    }
    return results;
  }

  // Nodes outside `group` that use `results`.
  std::vector<int> OutsideUsers(int group,
                                const std::vector<int>& results) const {
    std::vector<int> users;
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      if (group_of_node_[i] == group) continue;
      if (std::any_of(results.begin(), results.end(),
                      [&](int value) { return plan_.nodes[i].Reads(value); })) {
        users.push_back(static_cast<int>(i));
      }
    }
    return users;
  }

  // Moves a pointwise group into the only one that uses it, if that computes
  // each element no more often than before.
  void Absorb(int index) {
    KernelGroup& group = groups_[index];
    if (group.anchor >= 0) return;
    const std::vector<int> results = ResultsOf(group);
    const std::vector<int> users = OutsideUsers(index, results);
    if (users.empty()) return;
    const int target = group_of_node_[users[0]];
    if (std::any_of(users.begin(), users.end(),
                    [&](int user) { return group_of_node_[user] != target; })) {
      return;
    }
    std::vector<int>* const list = PlaceIn(group, results, users, target);
    if (list == nullptr) return;
    for (const int node : group.epilogue) group_of_node_[node] = target;
    list->insert(list->begin(), group.epilogue.begin(), group.epilogue.end());
    group.epilogue.clear();
  }

  // The list of `target` that may take the nodes of `group`, or null.
  std::vector<int>* PlaceIn(const KernelGroup& group,
                            const std::vector<int>& results,
                            const std::vector<int>& users, int target) {
    KernelGroup& into = groups_[target];
    const auto all_in = [&](const std::vector<int>& list) {
      return std::all_of(users.begin(), users.end(), [&](int user) {
        return std::find(list.begin(), list.end(), user) != list.end();
      });
    };
    if (all_in(into.epilogue)) {
      return TakesEpilogue(into, group.domain) ? &into.epilogue : nullptr;
    }
    if (into.anchor < 0) return nullptr;
    if (!TakesPrologueOf(into, group)) return nullptr;
    if (plan_.AnyIsOutput(results)) return nullptr;
    const int input = ValueOf(plan_.nodes[into.anchor].operands[0]);
    const bool feeds_anchor =
        users.size() == 1 && users[0] == into.anchor && into.prologue.empty();
    const bool feeds_prologue =
        all_in(into.prologue) &&
        AlignDims(group.domain) == AlignDims(DimsOf(input));
    return feeds_anchor || feeds_prologue ? &into.prologue : nullptr;
  }

  bool TakesPrologueOf(const KernelGroup& into,
                       const KernelGroup& group) const {
    const Node& anchor = plan_.nodes[into.anchor];
    if (TakesPrologue(anchor)) return true;
    std::vector<int> prologue = group.epilogue;
    prologue.insert(prologue.end(), into.prologue.begin(), into.prologue.end());
    return PoolTakesPrologue(plan_, anchor, prologue);
  }

  const LoweredPlan& plan_;
  std::vector<int> group_of_node_;
  std::vector<KernelGroup> groups_;
};

}  // namespace

std::vector<int> KernelGroup::Nodes() const {
  std::vector<int> nodes = prologue;
  if (anchor >= 0) nodes.push_back(anchor);
  nodes.insert(nodes.end(), epilogue.begin(), epilogue.end());
  if (tail >= 0) nodes.push_back(tail);
  if (early_pooling >= 0) nodes.push_back(early_pooling);
  nodes.insert(nodes.end(), tail_epilogue.begin(), tail_epilogue.end());
  nodes.insert(nodes.end(), shares.begin(), shares.end());
  nodes.insert(nodes.end(), finish.begin(), finish.end());
  return nodes;
}

std::set<int> ValuesRead(const LoweredPlan& plan, const KernelGroup& group) {
  std::set<int> read;
  const std::vector<int> nodes = group.Nodes();
  for (const int node : nodes) {
    for (const Operand& operand : plan.nodes[node].operands) {
      if (ValueOf(operand) >= 0) read.insert(ValueOf(operand));
    }
  }
  for (const int value : ValuesMade(plan, nodes)) read.erase(value);
  return read;
}

std::set<int> ValuesMade(const LoweredPlan& plan,
                         const std::vector<int>& nodes) {
  std::set<int> made;
  for (const int node : nodes) {
    const std::vector<int>& results = plan.nodes[node].results;
    made.insert(results.begin(), results.end());
  }
  return made;
}

bool AnyReads(const LoweredPlan& plan, const std::vector<int>& nodes,
              const std::set<int>& values) {
  return std::any_of(nodes.begin(), nodes.end(), [&](int node) {
    const std::vector<Operand>& operands = plan.nodes[node].operands;
    return std::any_of(operands.begin(), operands.end(),
                       [&](const Operand& operand) {
                         return values.count(ValueOf(operand)) > 0;
                       });
  });
}

bool IsReadOutside(const LoweredPlan& plan, const std::vector<int>& nodes,
                   int value) {
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const bool is_inside = std::find(nodes.begin(), nodes.end(),
                                     static_cast<int>(i)) != nodes.end();
    if (!is_inside && plan.nodes[i].Reads(value)) return true;
  }
  return false;
}

std::set<int> WholeValuesRead(const LoweredPlan& plan, const KernelGroup& group,
                              const Dims& dims) {
  std::set<int> read = ValuesRead(plan, group);
  std::erase_if(read, [&](int value) {
    return AlignDims(plan.values[value].desc.dims) != AlignDims(dims);
  });
  return read;
}

KernelGroup UpToAnchor(const KernelGroup& group) {
  KernelGroup reading;
  reading.anchor = group.anchor;
  reading.prologue = group.prologue;
  return reading;
}

std::set<int> WholeValuesReduced(const LoweredPlan& plan,
                                 const KernelGroup& group) {
  const int input = ValueOf(plan.nodes[group.anchor].operands[0]);
  return WholeValuesRead(plan, UpToAnchor(group), plan.values[input].desc.dims);
}

std::vector<KernelGroup> GroupNodes(const LoweredPlan& plan) {
  return Grouping(plan).Run();
}

}  // namespace kiln
