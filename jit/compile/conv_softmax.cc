#include "jit/compile/conv_softmax.h"

#include <algorithm>
#include <set>
#include <utility>

namespace kiln {
namespace {

class Gathering {
 public:
  Gathering(const LoweredPlan& plan, int conv, std::vector<KernelGroup>* groups)
      : plan_(plan), conv_(conv), groups_(*groups) {}

  bool Run() && {
    if (Gather(conv_)) return true;
    for (const int reader : ReadersOf(ResultsOf(conv_))) {
      if (IsPointwise(reader) && Gather(reader)) return true;
    }
    return false;
  }

 private:
  const Node& NodeAt(int index) const { return plan_.nodes[index]; }

  // Groups that read one of `values` and do not make it.
  std::vector<int> ReadersOf(const std::set<int>& values) const {
    std::vector<int> readers;
    for (size_t i = 0; i < groups_.size(); ++i) {
      const std::set<int> read = ValuesRead(plan_, groups_[i]);
      if (std::any_of(values.begin(), values.end(),
                      [&](int value) { return read.count(value) > 0; })) {
        readers.push_back(static_cast<int>(i));
      }
    }
    return readers;
  }

  std::set<int> ResultsOf(int group) const {
    return ValuesMade(plan_, groups_[group].Nodes());
  }

  // Nothing but pointwise nodes on the convolution's elements.
  bool IsPointwise(int index) const {
    const KernelGroup& group = groups_[index];
    return group.anchor < 0 && !group.epilogue.empty() &&
           group.domain == groups_[conv_].domain;
  }

  // With `source`, whose results two groups need and nobody else: statistics
  // and softmax.
  bool Gather(int source) {
    const std::vector<int> readers = ReadersOf(ResultsOf(source));
    if (readers.size() != 2) return false;
    const int statistics = readers[0];
    const int softmax = readers[1];
    if (!AreStatistics(statistics, source) || !IsPointwise(softmax) ||
        ReadersOf(ResultsOf(statistics)) != std::vector<int>{softmax} ||
        !ReadsElementsOnce(softmax, source, groups_[statistics].anchor)) {
      return false;
    }
    KernelGroup gathered = std::move(groups_[statistics]);
    gathered.shares = std::move(groups_[softmax].epilogue);
    groups_[statistics] = {};
    if (source != conv_) {
      gathered.prologue = std::move(groups_[source].epilogue);
      groups_[source] = {};
    }
    groups_[softmax] = std::move(gathered);
    return true;
  }

  // Of softmax over channels, of a value that `source` makes.
  bool AreStatistics(int index, int source) const {
    const KernelGroup& group = groups_[index];
    if (group.anchor < 0 || !group.prologue.empty()) return false;
    const Node& node = NodeAt(group.anchor);
    return node.kind == NodeKind::kReduce && node.op == OpKind::kSoftmax &&
           !plan_.AnyIsOutput(node.results) && IsOverChannels(node) &&
           ResultsOf(source).count(ValueOf(node.operands[0])) > 0;
  }

  bool IsOverChannels(const Node& statistics) const {
    Dims kept = plan_.values[ValueOf(statistics.operands[0])].desc.dims;
    if (kept.size() != 4 || kept[1] == 1) return false;
    kept[1] = 1;
    return plan_.values[statistics.results[0]].desc.dims == kept;
  }

  // Whether `group` reads of the kernel's elements what the statistics are
  // taken of, as a softmax by them, and nothing else: by then their powers are
  // all that is left.
  bool ReadsElementsOnce(int group, int source, int statistics) const {
    const Node& taken = NodeAt(statistics);
    std::set<int> elements = ResultsOf(conv_);
    elements.merge(ResultsOf(source));
    const std::vector<int>& nodes = groups_[group].epilogue;
    return std::all_of(nodes.begin(), nodes.end(), [&](int index) {
      const Node& node = NodeAt(index);
      if (node.op != OpKind::kSoftmax)
        return !AnyReads(plan_, {index}, elements);
      return ValueOf(node.operands[0]) == ValueOf(taken.operands[0]) &&
             ValueOf(node.operands[1]) == taken.results[0];
    });
  }

  const LoweredPlan& plan_;
  const int conv_;
  std::vector<KernelGroup>& groups_;
};

}  // namespace

bool GatherSoftmax(const LoweredPlan& plan, int conv,
                   std::vector<KernelGroup>* groups) {
  return Gathering(plan, conv, groups).Run();
}

}  // namespace kiln
