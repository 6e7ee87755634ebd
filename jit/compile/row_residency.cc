#include "jit/compile/row_residency.h"

#include <algorithm>
#include <set>
#include <utility>

#include "jit/compile/compute_again.h"
#include "jit/compile/reduce_geometry.h"
#include "jit/compile/row_chains.h"
#include "jit/compile/row_work.h"

namespace kiln {
namespace {

// Shorter ones are not worth a reduction each.
constexpr int64_t kMinSegment = 16;

bool Contains(const std::vector<int>& list, int item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool IsPointwise(const KernelGroup& group) {
  return group.anchor < 0 && group.tail < 0 && !group.epilogue.empty();
}

class RowMerging {
 public:
  RowMerging(const LoweredPlan& plan, const Target& target,
             std::vector<KernelGroup> groups, const RowOptions& options)
      : plan_(plan), target_(target), options_(options) {
    for (KernelGroup& group : groups) {
      groups_.emplace_back().group = std::move(group);
    }
  }

  std::vector<RowGroup> Run() && {
    for (size_t i = 0; i < groups_.size(); ++i) JoinChain(static_cast<int>(i));
    MergeAll();
    std::erase_if(groups_,
                  [](const RowGroup& group) { return group.group.IsEmpty(); });
    return std::move(groups_);
  }

 private:
  const Node& NodeAt(int index) const { return plan_.nodes[index]; }
  const Dims& DimsOf(int value) const { return plan_.values[value].desc.dims; }

  // Groups that read a result of `nodes`, but for those in `nodes`' own.
  std::vector<int> Readers(int own, const std::vector<int>& nodes) const {
    const std::set<int> values = ValuesMade(plan_, nodes);
    std::vector<int> readers;
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (static_cast<int>(i) == own) continue;
      if (AnyReads(plan_, groups_[i].group.Nodes(), values)) {
        readers.push_back(static_cast<int>(i));
      }
    }
    return readers;
  }

  // The group that alone uses statistic `index`, or what is computed of that;
  // else -1.
  int ReaderOfRows(int index) const {
    const KernelGroup& group = groups_[index].group;
    if (group.anchor < 0 || groups_[index].rows) return -1;
    const Node& node = NodeAt(group.anchor);
    if (node.kind != NodeKind::kReduce) return -1;
    const Dims& input = DimsOf(ValueOf(node.operands[0]));
    if (!TakesRows(plan_, node, input)) return -1;
    const std::vector<int> nodes = RowNodesOf(group);
    for (const int made : nodes) {
      if (plan_.AnyIsOutput(NodeAt(made).results)) return -1;
    }
    const std::vector<int> readers = Readers(index, nodes);
    if (readers.size() != 1 || readers[0] < index) return -1;
    const RowGroup& user = groups_[readers[0]];
    if (user.rows) return -1;
    if (ReadsByChannel(plan_, user.group.Nodes(), ValuesMade(plan_, nodes))) {
      return -1;
    }
    return readers[0];
  }

  // A statistic, and what is computed of it.
  static std::vector<int> RowNodesOf(const KernelGroup& group) {
    std::vector<int> nodes = group.epilogue;
    nodes.push_back(group.anchor);
    return nodes;
  }

  // That group if it is pointwise over the same elements, or ends in segments.
  int UserOfRows(int index) const {
    const int reader = ReaderOfRows(index);
    if (reader < 0) return -1;
    const KernelGroup& user = groups_[reader].group;
    const Node& node = NodeAt(groups_[index].group.anchor);
    const Dims& input = DimsOf(ValueOf(node.operands[0]));
    const ReduceView view = ViewOf(node, input);
    if (view.kept1 == 1 && EndsInSegments(user, input, view.reduced0)) {
      // What is computed of that reduction's result has none of the row's.
      const std::set<int> values =
          ValuesMade(plan_, RowNodesOf(groups_[index].group));
      return AnyReads(plan_, user.epilogue, values) ? -1 : reader;
    }
    const bool fits =
        IsPointwise(user) && AlignDims(user.domain) == AlignDims(input);
    return fits ? reader : -1;
  }

  // That group if it pools what it computes of the rows, of nothing that is
  // made later than they are.
  int PoolingOfRows(int index) const {
    const int reader = ReaderOfRows(index);
    if (reader < 0) return -1;
    const KernelGroup& user = groups_[reader].group;
    if (user.anchor < 0 || NodeAt(user.anchor).kind != NodeKind::kPool2d) {
      return -1;
    }
    const Dims& input =
        DimsOf(ValueOf(NodeAt(groups_[index].group.anchor).operands[0]));
    const Dims& pooled = DimsOf(ValueOf(NodeAt(user.anchor).operands[0]));
    if (AlignDims(input) != AlignDims(pooled)) return -1;
    for (int i = index + 1; i < reader; ++i) {
      if (AnyReads(plan_, user.prologue,
                   ValuesMade(plan_, groups_[i].group.Nodes()))) {
        return -1;
      }
    }
    return reader;
  }

  // Whether `user` is a reduction, each output of which is of neighbours within
  // one of the rows of `row_length` neighbours in a tensor of extents `rows`.
  bool EndsInSegments(const KernelGroup& user, const Dims& rows,
                      int64_t row_length) const {
    if (user.anchor < 0 || user.prologue.empty() || user.tail >= 0) {
      return false;
    }
    const Node& node = NodeAt(user.anchor);
    if (node.kind != NodeKind::kReduce || node.results.size() > 1) return false;
    const Dims& input = DimsOf(ValueOf(node.operands[0]));
    const ReduceView view = ViewOf(node, input);
    return AlignDims(input) == AlignDims(rows) && view.kept1 == 1 &&
           view.reduced1 == 1 && view.reduced0 >= kMinSegment &&
           row_length % view.reduced0 == 0;
  }

  // The pointwise group that makes the statistic's input, if it can move to
  // `user`: what reads its results comes there or later, or is there where rows
  // end in a reduction and nothing of them is stored. Else -1.
  int SourceOfRows(int index, int user) const {
    const KernelGroup& group = groups_[index].group;
    if (!group.prologue.empty()) return -1;
    const int input = ValueOf(NodeAt(group.anchor).operands[0]);
    const int producer = plan_.values[input].producer;
    for (int i = 0; i < index; ++i) {
      const KernelGroup& source = groups_[i].group;
      if (groups_[i].rows || !IsPointwise(source)) continue;
      if (!Contains(source.epilogue, producer)) continue;
      if (AlignDims(source.domain) != AlignDims(DimsOf(input))) return -1;
      const bool stores = groups_[user].group.anchor < 0;
      for (const int reader : Readers(i, source.epilogue)) {
        const bool is_inside = reader == index || reader == user;
        if (!is_inside && (reader < user || !stores)) return -1;
      }
      return stores || !HasOutput(source) ? i : -1;
    }
    return -1;
  }

  bool HasOutput(const KernelGroup& group) const {
    const std::vector<int> nodes = group.Nodes();
    return std::any_of(nodes.begin(), nodes.end(), [&](int node) {
      return plan_.AnyIsOutput(NodeAt(node).results);
    });
  }

  // Chains, and what may be a chain of one (TryWarpChain).
  RowWork Sparing(RowWork work) const {
    work.spares_registers =
        options_.spares_registers && (work.reductions > 1 || work.pitch > 1);
    return work;
  }

  std::optional<RowGeometry> Choose(const RowWork& work) const {
    if (options_.rank == 0) return ChooseRowGeometry(work, target_);
    std::optional<RowGeometry> rows;
    int rank = options_.rank;
    for (const RowCandidate& candidate : RankRowGeometries(work, target_)) {
      if (!candidate.refusal.empty()) break;
      rows = candidate.geometry;
      if (rank-- == 0) break;
    }
    return rows;
  }

  void MergeAll() {
    for (size_t i = 0; i < groups_.size(); ++i) Merge(static_cast<int>(i));
  }

  int CountKernels() const {
    return static_cast<int>(std::count_if(
        groups_.begin(), groups_.end(),
        [](const RowGroup& group) { return !group.group.IsEmpty(); }));
  }

  // The groups, and which of them are joined already.
  std::vector<KernelGroup> Groups(std::set<int>* joined) const {
    std::vector<KernelGroup> groups;
    for (const RowGroup& group : groups_) {
      if (group.rows) joined->insert(static_cast<int>(groups.size()));
      groups.push_back(group.group);
    }
    return groups;
  }

  void Join(const std::vector<int>& chain, RowGroup joined) {
    for (const int member : chain) groups_[member].group = {};
    groups_[chain.back()] = std::move(joined);
  }

  // Makes one kernel of several reductions over the rows of group `index`, if
  // that saves one: a reduction with what uses it may be one anyway, which is
  // slower than registers where rows end in numbers.
  void JoinChain(int index) {
    std::set<int> taken;
    const std::vector<KernelGroup> groups = Groups(&taken);
    const std::vector<int> chain = ChainOf(plan_, groups, taken, index);
    if (chain.empty()) return;
    RowMerging apart = *this;
    apart.MergeAll();
    std::vector<KernelGroup> kernels;
    for (const int member : chain) {
      const KernelGroup& kernel = apart.groups_[member].group;
      if (!kernel.IsEmpty()) kernels.push_back(kernel);
    }
    const KernelGroup joined = JoinedChain(plan_, groups, chain);
    RowWork work = Sparing(WorkOfChain(plan_, joined, kernels));
    // Each takes as long as two, by two plans where these are a third faster.
    const int of_reduced_rows = apart.CountReducedRows(chain);
    work.apart_kernels += of_reduced_rows;
    if (work.kept_bytes == 0) return;
    const std::optional<RowGeometry> rows = Choose(work);
    if (!rows) return;
    RowMerging together = *this;
    together.Join(chain, {joined, rows, work});
    together.MergeAll();
    const bool may_be_one = of_reduced_rows > 0 && rows->is_warp_chain();
    if (together.CountKernels() < apart.CountKernels() + (may_be_one ? 1 : 0)) {
      Join(chain, {joined, rows, work});
    }
  }

  // How many of `members` keep rows that end in one number each.
  int CountReducedRows(const std::vector<int>& members) const {
    return static_cast<int>(
        std::count_if(members.begin(), members.end(), [&](int member) {
          const RowGroup& group = groups_[member];
          return group.rows && group.rows->segment == group.rows->length;
        }));
  }

  // Up to the statistic's group, of the elements that `source` makes, if any.
  KernelGroup RowsOf(int index, int source) const {
    KernelGroup rows = groups_[index].group;
    rows.domain = DimsOf(ValueOf(NodeAt(rows.anchor).operands[0]));
    if (source >= 0) rows.prologue = groups_[source].group.epilogue;
    return rows;
  }

  // Makes `merged` the kernel at `place` if its rows can be kept, and `source`
  // a part of it.
  bool Keep(KernelGroup merged, int index, int place, int source) {
    const RowWork work = Sparing(WorkOfRows(plan_, merged));
    if (work.staged.empty() || !UsesRows(plan_, merged)) return false;
    std::optional<RowGeometry> rows = Choose(work);
    groups_[index].work = work;
    if (!rows) return false;
    if (options_.freely) rows->resident = false;
    groups_[index].group = {};
    groups_[place] = {std::move(merged), rows, work};
    if (source >= 0) groups_[source].group = {};
    return true;
  }

  void Merge(int index) {
    const int user = UserOfRows(index);
    if (user < 0) return MergeBeforePooling(index);
    const int source = SourceOfRows(index, user);
    KernelGroup merged = RowsOf(index, source);
    const KernelGroup& using_rows = groups_[user].group;
    const bool has_tail = using_rows.anchor >= 0;
    const std::vector<int>& more =
        has_tail ? using_rows.prologue : using_rows.epilogue;
    merged.epilogue.insert(merged.epilogue.end(), more.begin(), more.end());
    if (has_tail) {
      merged.tail = using_rows.anchor;
      merged.tail_epilogue = using_rows.epilogue;
    }
    Keep(std::move(merged), index, user, source);
  }

  // A pooling leaves what it would compute of the rows to their kernel, where
  // that makes the elements, too: one kernel and two touches less. Not of
  // elements that both may compute (compute_again.h).
  void MergeBeforePooling(int index) {
    const int pooling = PoolingOfRows(index);
    if (pooling < 0) return;
    const int source = SourceOfRows(index, pooling);
    if (source < 0 || AreFewShort(plan_, groups_[source].group)) return;
    KernelGroup merged = RowsOf(index, source);
    std::vector<int>& prologue = groups_[pooling].group.prologue;
    merged.epilogue.insert(merged.epilogue.end(), prologue.begin(),
                           prologue.end());
    if (Keep(std::move(merged), index, index, source)) prologue.clear();
  }

  const LoweredPlan& plan_;
  const Target& target_;
  const RowOptions options_;
  std::vector<RowGroup> groups_;
};

}  // namespace

std::vector<RowGroup> KeepRowsOnChip(const LoweredPlan& plan,
                                     const Target& target,
                                     std::vector<KernelGroup> groups,
                                     const RowOptions& options) {
  return RowMerging(plan, target, std::move(groups), options).Run();
}

}  // namespace kiln
