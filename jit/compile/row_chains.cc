#include "jit/compile/row_chains.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "jit/compile/reduce_geometry.h"

namespace kiln {
namespace {

// The extents that results of a reduction of `input`, seen so, have where they
// stand in the place of each row.
Dims4 ExtentsPerRow(const ReduceView& view, const Dims& input) {
  Dims4 extents = AlignDims(input);
  size_t axis = extents.size();
  int64_t count = 1;
  while (count < view.reduced1) count *= std::exchange(extents[--axis], 1);
  count = 1;
  while (count < view.kept1) count *= extents[--axis];
  count = 1;
  while (count < view.reduced0) count *= std::exchange(extents[--axis], 1);
  return extents;
}

bool AreRows(const ReduceView& view) {
  return view.reduced1 == 1 && view.kept2 == 1;
}

// Rows of several runs of neighbours, as a channel has of all images.
bool AreRuns(const ReduceView& view) {
  return view.reduced1 > 1 && view.kept0 == 1 && view.kept2 == 1;
}

// More reductions, or operations on elements that each may compute again, make
// code too long to be one function.
constexpr int64_t kMaxReductions = 8;
constexpr int64_t kMaxOperations = 96;

class ChainSearch {
 public:
  ChainSearch(const LoweredPlan& plan, const std::vector<KernelGroup>& groups,
              const std::set<int>& taken)
      : plan_(plan), groups_(groups), taken_(taken) {}

  // All that can join; without the last again and again where that cannot be
  // one kernel.
  std::vector<int> From(int index) {
    while (BeginAt(index)) {
      Grow();
      if (CountReductions() < 2) return {};
      if (IsInOrder() && BroadcastsRows() && IsShort() && NestsInside()) {
        return {members_.begin(), members_.end()};
      }
      taken_.insert(*members_.rbegin());
    }
    return {};
  }

 private:
  const Node& NodeAt(int index) const { return plan_.nodes[index]; }
  const Dims& DimsOf(int value) const { return plan_.values[value].desc.dims; }
  const Dims& ResultDims(const Node& node) const {
    return DimsOf(node.results[0]);
  }

  bool IsReduction(int index) const {
    const KernelGroup& group = groups_[index];
    return group.anchor >= 0 && group.tail < 0 &&
           NodeAt(group.anchor).kind == NodeKind::kReduce;
  }

  void Grow() {
    for (bool grows = true; grows;) {
      grows = false;
      for (size_t i = 0; i < groups_.size(); ++i) {
        const int group = static_cast<int>(i);
        if (members_.count(group) > 0 || taken_.count(group) > 0) continue;
        if (!Joins(group)) continue;
        members_.insert(group);
        grows = true;
      }
    }
  }

  bool BeginAt(int index) {
    if (taken_.count(index) > 0 || !IsReduction(index)) return false;
    const Node& node = NodeAt(groups_[index].anchor);
    domain_ = AlignDims(DimsOf(ValueOf(node.operands[0])));
    view_ = ViewOf(node, DimsOf(ValueOf(node.operands[0])));
    if (!AreRows(view_) && !AreRuns(view_)) return false;
    if (!Fits(index)) return false;
    members_ = {index};
    return RowNodesAreInside(index);
  }

  // Whether rows are parts of each other: half, a quarter or the like, which
  // are neighbours in memory.
  bool Nests(const ReduceView& view) const {
    const int64_t longer = std::max(view.reduced0, view_.reduced0);
    const int64_t shorter = std::min(view.reduced0, view_.reduced0);
    return AreRows(view) && AreRows(view_) && view.kept1 == 1 &&
           view_.kept1 == 1 && longer % shorter == 0 &&
           std::has_single_bit(static_cast<uint64_t>(longer / shorter));
  }

  // Whether all reductions are over the same rows; or else are norms, whose
  // statistics nobody else reads: only those of the longest rows are stored.
  bool NestsInside() const {
    bool is_nested = false;
    for (const int member : members_) {
      if (!IsReduction(member)) continue;
      const Node& node = NodeAt(groups_[member].anchor);
      is_nested |= !(ViewOf(node, DimsOf(ValueOf(node.operands[0]))) == view_);
    }
    return !is_nested ||
           std::all_of(members_.begin(), members_.end(), [&](int member) {
             return !IsReduction(member) || IsNormInside(member);
           });
  }

  bool IsNormInside(int member) const {
    const Node& node = NodeAt(groups_[member].anchor);
    if (!IsOfNorm(node)) return false;
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (members_.count(static_cast<int>(i)) > 0) continue;
      if (AnyReads(plan_, groups_[i].Nodes(),
                   {node.results.begin(), node.results.end()})) {
        return false;
      }
    }
    return true;
  }

  // Elements of the rows' extents.
  bool AreElements(const std::vector<int>& nodes) const {
    return std::all_of(nodes.begin(), nodes.end(), [&](int node) {
      return NodeAt(node).kind == NodeKind::kPointwise &&
             AlignDims(ResultDims(NodeAt(node))) == domain_;
    });
  }

  // Numbers of the rows.
  bool AreOfRows(const std::vector<int>& nodes) const {
    return std::all_of(nodes.begin(), nodes.end(), [&](int node) {
      return NodeAt(node).kind == NodeKind::kPointwise &&
             IsOfRows(NodeAt(node).results[0]);
    });
  }

  // By its size: where a row has one element, it may be that, and joins like
  // one.
  bool IsOfRows(int value) const {
    return NumElements(DimsOf(value)) == view_.outputs();
  }

  // Whether all that the group computes is of the rows, or of each.
  bool Fits(int index) {
    const KernelGroup& group = groups_[index];
    if (!group.finish.empty() || group.tail >= 0) return false;
    if (group.anchor < 0) {
      return !group.epilogue.empty() &&
             (AreElements(group.epilogue) || AreOfRows(group.epilogue));
    }
    const Node& node = NodeAt(group.anchor);
    if (node.kind != NodeKind::kReduce) return false;
    const Dims& input = DimsOf(ValueOf(node.operands[0]));
    if (AlignDims(input) != domain_) return false;
    const ReduceView view = ViewOf(node, input);
    if (!(view == view_) && !(IsOfNorm(node) && Nests(view))) return false;
    return AreElements(group.prologue) && AreOfRows(group.epilogue);
  }

  std::set<int> ResultsOf(int index) const {
    return ValuesMade(plan_, groups_[index].Nodes());
  }

  bool Reads(int reader, int producer) const {
    return AnyReads(plan_, groups_[reader].Nodes(), ResultsOf(producer));
  }

  std::set<int> WholeValues(int index) const {
    std::set<int> values = ValuesRead(plan_, groups_[index]);
    std::erase_if(
        values, [&](int value) { return AlignDims(DimsOf(value)) != domain_; });
    return values;
  }

  bool SharesElements(int a, int b) const {
    const std::set<int> of_a = WholeValues(a);
    const std::set<int> of_b = WholeValues(b);
    return std::any_of(of_a.begin(), of_a.end(),
                       [&](int value) { return of_b.count(value) > 0; });
  }

  // Whether numbers of rows are computed of members' alone, one of one.
  bool RowNodesAreInside(int index) const {
    std::set<int> inside = ResultsOf(index);
    for (const int member : members_) inside.merge(ResultsOf(member));
    const std::vector<int>& nodes = groups_[index].epilogue;
    return std::all_of(nodes.begin(), nodes.end(), [&](int node) {
      const int result = NodeAt(node).results[0];
      return !IsOfRows(result) || NodeAt(node).ReadsOnly([&](int value) {
        return inside.count(value) > 0 &&
               AlignDims(DimsOf(value)) == AlignDims(DimsOf(result));
      });
    });
  }

  bool Joins(int index) {
    const bool meets =
        std::any_of(members_.begin(), members_.end(), [&](int member) {
          return Reads(index, member) || Reads(member, index) ||
                 (IsReduction(index) && SharesElements(index, member));
        });
    return meets && Fits(index) && RowNodesAreInside(index);
  }

  int64_t CountReductions() const {
    return std::count_if(members_.begin(), members_.end(),
                         [&](int member) { return IsReduction(member); });
  }

  // Whether all others that read what members make come behind the last, and
  // all that members read is made before it.
  bool IsInOrder() const {
    for (size_t i = 0; i < groups_.size(); ++i) {
      const int other = static_cast<int>(i);
      if (members_.count(other) > 0) continue;
      const bool is_before = other < *members_.rbegin();
      for (const int member : members_) {
        if (is_before ? Reads(other, member) : Reads(member, other)) {
          return false;
        }
      }
    }
    return true;
  }

  bool IsShort() const {
    int64_t operations = 0;
    for (const int member : members_) {
      for (const int node : groups_[member].Nodes()) {
        operations += AlignDims(ResultDims(NodeAt(node))) == domain_ ? 1 : 0;
      }
    }
    return CountReductions() <= kMaxReductions &&
           CountReductions() * operations <= kMaxOperations;
  }

  // Whether elements that read a row's number find it in the row's place.
  bool BroadcastsRows() const {
    const Dims4 per_row = ExtentsPerRow(view_, ToDims(domain_));
    std::set<int> numbers;
    std::set<int> elsewhere;
    for (const int member : members_) {
      for (const int node : groups_[member].Nodes()) {
        const int result = NodeAt(node).results[0];
        if (IsOfNorm(NodeAt(node)) || !IsOfRows(result)) continue;
        numbers.insert(result);
        if (AlignDims(DimsOf(result)) != per_row) elsewhere.insert(result);
      }
    }
    return std::none_of(elsewhere.begin(), elsewhere.end(),
                        [&](int number) { return IsReadByElements(number); }) &&
           std::none_of(members_.begin(), members_.end(), [&](int member) {
             return ReadsByChannel(plan_, groups_[member].Nodes(), numbers);
           });
  }

  bool IsReadByElements(int value) const {
    return std::any_of(members_.begin(), members_.end(), [&](int member) {
      const std::vector<int> nodes = groups_[member].Nodes();
      return std::any_of(nodes.begin(), nodes.end(), [&](int node) {
        return AlignDims(ResultDims(NodeAt(node))) == domain_ &&
               NodeAt(node).Reads(value);
      });
    });
  }

  static Dims ToDims(const Dims4& dims) { return {dims.begin(), dims.end()}; }

  const LoweredPlan& plan_;
  const std::vector<KernelGroup>& groups_;
  std::set<int> taken_;
  Dims4 domain_ = {};
  ReduceView view_;
  std::set<int> members_;
};

}  // namespace

bool IsOfNorm(const Node& reduce) {
  return reduce.op == OpKind::kGroupNorm || reduce.op == OpKind::kSoftmax;
}

bool ReadsByChannel(const LoweredPlan& plan, const std::vector<int>& nodes,
                    const std::set<int>& values) {
  return std::any_of(nodes.begin(), nodes.end(), [&](int index) {
    const Node& node = plan.nodes[index];
    const bool is_batch = node.op == OpKind::kBatchNorm;
    if (!is_batch && node.op != OpKind::kGroupNorm) return false;
    // Of a matrix, channels are columns.
    const int input = ValueOf(node.operands[0]);
    if (plan.values[input].desc.dims.size() == 2) return false;
    const size_t first = is_batch ? 1 : 3;
    for (size_t i = first; i < node.operands.size(); ++i) {
      if (values.count(ValueOf(node.operands[i])) > 0) return true;
    }
    return false;
  });
}

bool TakesRows(const LoweredPlan& plan, const Node& node, const Dims& input) {
  const ReduceView view = ViewOf(node, input);
  if (!AreRows(view)) return false;
  return IsOfNorm(node) || AlignDims(plan.values[node.results[0]].desc.dims) ==
                               ExtentsPerRow(view, input);
}

std::vector<int> ChainOf(const LoweredPlan& plan,
                         const std::vector<KernelGroup>& groups,
                         const std::set<int>& taken, int index) {
  return ChainSearch(plan, groups, taken).From(index);
}

KernelGroup JoinedChain(const LoweredPlan& plan,
                        const std::vector<KernelGroup>& groups,
                        const std::vector<int>& chain) {
  std::vector<int> nodes;
  for (const int member : chain) {
    const std::vector<int> more = groups[member].Nodes();
    nodes.insert(nodes.end(), more.begin(), more.end());
  }
  std::sort(nodes.begin(), nodes.end());
  KernelGroup joined;
  for (const int node : nodes) {
    if (joined.anchor >= 0) {
      joined.epilogue.push_back(node);
    } else if (plan.nodes[node].kind == NodeKind::kReduce) {
      joined.anchor = node;
    } else {
      joined.prologue.push_back(node);
    }
  }
  const Node& anchor = plan.nodes[joined.anchor];
  joined.domain = plan.values[ValueOf(anchor.operands[0])].desc.dims;
  return joined;
}

RowValues::RowValues(const LoweredPlan& plan, const KernelGroup& group)
    : link_of_value_(plan.values.size(), -1) {
  const Dims4 domain = AlignDims(group.domain);
  for (const int index : group.Nodes()) {
    const Node& node = plan.nodes[index];
    int link = -1;
    if (node.kind == NodeKind::kReduce) {
      link = static_cast<int>(links_.size());
      links_.push_back(index);
    } else if (AlignDims(plan.values[node.results[0]].desc.dims) != domain) {
      for (const Operand& operand : node.operands) {
        link = std::max(link, LinkOf(ValueOf(operand)));
      }
    }
    for (const int result : node.results) link_of_value_[result] = link;
  }
}

int RowValues::LinkOf(int value) const {
  return value < 0 ? -1 : link_of_value_[value];
}

bool RowValues::IsOfRow(const Node& node) const {
  return LinkOf(node.results[0]) >= 0;
}

}  // namespace kiln
