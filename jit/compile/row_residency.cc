#include "jit/compile/row_residency.h"

#include <algorithm>
#include <utility>

#include "jit/compile/reduce_geometry.h"

namespace kiln {
namespace {

constexpr int kF32Bytes = 4;
// Shorter ones are not worth a reduction each.
constexpr int64_t kMinSegment = 16;
// Operations that are rather computed twice than that 16-bit values are kept in
// f32, or that elements that are used as they are are read twice.
constexpr size_t kMaxComputedAgain = 2;

bool Contains(const std::vector<int>& list, int item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// Not a reduction of the plan, but what lowering makes of a norm or a softmax.
bool IsOfNorm(const Node& reduce) {
  return reduce.op == OpKind::kGroupNorm || reduce.op == OpKind::kSoftmax;
}

bool IsPointwise(const KernelGroup& group) {
  return group.anchor < 0 && group.tail < 0 && !group.epilogue.empty();
}

class RowMerging {
 public:
  RowMerging(const LoweredPlan& plan, const Target& target,
             std::vector<KernelGroup> groups, int rank, bool freely)
      : plan_(plan), target_(target), rank_(rank), freely_(freely) {
    for (KernelGroup& group : groups) {
      groups_.emplace_back().group = std::move(group);
    }
  }

  std::vector<RowGroup> Run() && {
    for (size_t i = 0; i < groups_.size(); ++i) Merge(static_cast<int>(i));
    std::vector<RowGroup> kept;
    for (RowGroup& group : groups_) {
      if (group.group.anchor >= 0 || !group.group.epilogue.empty()) {
        kept.push_back(std::move(group));
      }
    }
    return kept;
  }

 private:
  const Node& NodeAt(int index) const { return plan_.nodes[index]; }
  const Dims& DimsOf(int value) const { return plan_.values[value].desc.dims; }

  // Whether a node of `reader` reads a result of a node of `nodes`.
  bool ReadsAny(const KernelGroup& reader,
                const std::vector<int>& nodes) const {
    for (const int reading : reader.Nodes()) {
      for (const int node : nodes) {
        for (const int result : NodeAt(node).results) {
          if (NodeAt(reading).Reads(result)) return true;
        }
      }
    }
    return false;
  }

  // Groups that read a result of `nodes`, but for those in `nodes`' own.
  std::vector<int> Readers(int own, const std::vector<int>& nodes) const {
    std::vector<int> readers;
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (static_cast<int>(i) == own) continue;
      if (ReadsAny(groups_[i].group, nodes)) {
        readers.push_back(static_cast<int>(i));
      }
    }
    return readers;
  }

  // Whether kernels keep the rows of which `node`, of extents `input`, is
  // taken: they are neighbours in memory or lie side by side, and of reductions
  // that the plan has, results have an extent of 1 in the place of each row.
  bool TakesRows(const Node& node, const Dims& input) const {
    const ReduceView view = ViewOf(node, input);
    if (view.reduced1 != 1 || view.kept2 != 1) return false;
    if (IsOfNorm(node)) return true;
    Dims4 per_row = AlignDims(input);
    size_t axis = per_row.size();
    int64_t count = 1;
    while (count < view.kept1) count *= per_row[--axis];
    count = 1;
    while (count < view.reduced0) count *= std::exchange(per_row[--axis], 1);
    return AlignDims(DimsOf(node.results[0])) == per_row;
  }

  // The pointwise group over the same elements that alone uses statistic
  // `index`, or what is computed of that; else -1.
  int UserOfRows(int index) const {
    const KernelGroup& group = groups_[index].group;
    if (group.anchor < 0 || groups_[index].rows) return -1;
    const Node& node = NodeAt(group.anchor);
    if (node.kind != NodeKind::kReduce) return -1;
    const Dims& input = DimsOf(ValueOf(node.operands[0]));
    if (!TakesRows(node, input)) return -1;
    const ReduceView view = ViewOf(node, input);
    std::vector<int> nodes = group.epilogue;
    nodes.push_back(group.anchor);
    for (const int made : nodes) {
      if (plan_.AnyIsOutput(NodeAt(made).results)) return -1;
    }
    const std::vector<int> readers = Readers(index, nodes);
    if (readers.size() != 1 || readers[0] < index) return -1;
    const RowGroup& user = groups_[readers[0]];
    if (user.rows) return -1;
    if (view.kept1 == 1 && EndsInSegments(user.group, input, view.reduced0)) {
      return ReadsBehindTail(user.group, nodes) ? -1 : readers[0];
    }
    const bool fits = IsPointwise(user.group) &&
                      AlignDims(user.group.domain) == AlignDims(input);
    return fits ? readers[0] : -1;
  }

  // Whether what is computed of a reduction's result reads a result of `nodes`,
  // too, which do not reach that far.
  bool ReadsBehindTail(const KernelGroup& user,
                       const std::vector<int>& nodes) const {
    KernelGroup behind;
    behind.epilogue = user.epilogue;
    return ReadsAny(behind, nodes);
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

  std::optional<RowGeometry> Choose(const RowWork& work) const {
    if (rank_ == 0) return ChooseRowGeometry(work, target_);
    std::optional<RowGeometry> rows;
    int rank = rank_;
    for (const RowCandidate& candidate : RankRowGeometries(work, target_)) {
      if (!candidate.refusal.empty()) break;
      rows = candidate.geometry;
      if (rank-- == 0) break;
    }
    return rows;
  }

  void Merge(int index) {
    const int user = UserOfRows(index);
    if (user < 0) return;
    const int source = SourceOfRows(index, user);
    KernelGroup merged = groups_[index].group;
    merged.domain = DimsOf(ValueOf(NodeAt(merged.anchor).operands[0]));
    const KernelGroup& using_rows = groups_[user].group;
    const bool has_tail = using_rows.anchor >= 0;
    const std::vector<int>& more =
        has_tail ? using_rows.prologue : using_rows.epilogue;
    merged.epilogue.insert(merged.epilogue.end(), more.begin(), more.end());
    if (has_tail) {
      merged.tail = using_rows.anchor;
      merged.tail_epilogue = using_rows.epilogue;
    }
    if (source >= 0) merged.prologue = groups_[source].group.epilogue;

    const RowWork work = WorkOf(merged);
    if (work.staged.empty() || !UsesRows(merged)) return;
    std::optional<RowGeometry> rows = Choose(work);
    groups_[index].work = work;
    if (!rows) return;
    if (freely_) rows->resident = false;
    groups_[user] = {std::move(merged), rows, work};
    groups_[index].group = {};
    if (source >= 0) groups_[source].group = {};
  }

  // The statistic, and of the prologue what makes its operand.
  KernelGroup UpToStatistic(const KernelGroup& group) const {
    KernelGroup reading;
    reading.anchor = group.anchor;
    reading.domain = group.domain;
    for (auto node = group.prologue.rbegin(); node != group.prologue.rend();
         ++node) {
      if (!ReadsAny(reading, {*node})) continue;
      reading.prologue.insert(reading.prologue.begin(), *node);
    }
    return reading;
  }

  // Whether anything but what makes the statistic reads `value`.
  bool IsReadBeside(int value, const KernelGroup& group,
                    const KernelGroup& reading) const {
    const std::vector<int> nodes = group.Nodes();
    return std::any_of(nodes.begin(), nodes.end(), [&](int node) {
      return node != group.anchor && !Contains(reading.prologue, node) &&
             NodeAt(node).Reads(value);
    });
  }

  // Whether what is behind the statistic needs any element that it is taken of.
  bool UsesRows(const KernelGroup& group) const {
    const KernelGroup reading = UpToStatistic(group);
    std::vector<int> elements = StagedOf(reading);
    for (const int node : reading.prologue) {
      elements.push_back(NodeAt(node).results[0]);
    }
    return std::any_of(elements.begin(), elements.end(), [&](int value) {
      return IsReadBeside(value, group, reading);
    });
  }

  int BytesOf(int value) const {
    return static_cast<int>(ElementSize(plan_.values[value].desc.dtype));
  }

  // Values with as many elements as the rows that `group` reads from memory.
  std::vector<int> StagedOf(const KernelGroup& group) const {
    std::vector<int> staged;
    const std::vector<int> nodes = group.Nodes();
    for (const int node : nodes) {
      for (const Operand& operand : NodeAt(node).operands) {
        const int value = ValueOf(operand);
        if (value < 0 || Contains(staged, value)) continue;
        const int producer = plan_.values[value].producer;
        if (producer >= 0 && Contains(nodes, producer)) continue;
        if (AlignDims(DimsOf(value)) != AlignDims(group.domain)) continue;
        staged.push_back(value);
      }
    }
    return staged;
  }

  RowWork WorkOf(const KernelGroup& group) const {
    const Node& statistic = NodeAt(group.anchor);
    const ReduceView view = ViewOf(statistic, group.domain);
    RowWork work;
    work.rows = view.kept0 * view.kept1;
    work.length = view.reduced0;
    work.pitch = view.kept1;
    work.staged = StagedOf(group);
    for (const int value : work.staged) {
      work.staged_bytes.push_back(BytesOf(value));
    }
    work.stored_bytes = StoredBytes(group);
    work.publishes = group.tail < 0 && IsOfNorm(statistic);
    if (group.tail >= 0) {
      work.segment = ViewOf(NodeAt(group.tail), group.domain).reduced0;
    }
    work.prologue = static_cast<int>(group.prologue.size());
    work.epilogue = static_cast<int>(group.epilogue.size());
    ChooseKept(group, &work);
    return work;
  }

  // What stays on the chip: the one operand that the statistics are computed
  // from, as it is, or what they are taken of. The former if it has 16 bits or
  // is used as it is, too.
  void ChooseKept(const KernelGroup& group, RowWork* work) const {
    const KernelGroup reading = UpToStatistic(group);
    const std::vector<int> read = StagedOf(reading);
    if (read.size() != 1) return;
    const int bytes = BytesOf(read[0]);
    const OpKind op = NodeAt(group.anchor).op;
    const bool of_powers =
        op == OpKind::kSoftmax || (op == OpKind::kLogSumExp && work->pitch > 1);
    const bool may_again =
        !of_powers && reading.prologue.size() <= kMaxComputedAgain;
    work->is_read_beside =
        !reading.prologue.empty() && IsReadBeside(read[0], group, reading);
    work->reads_again =
        may_again && (bytes != kF32Bytes || work->is_read_beside);
    work->copies = bytes == kF32Bytes || work->reads_again;
    if (work->copies) work->kept_bytes = bytes;
  }

  // Bytes of an element of everything that `group` leaves in memory.
  std::vector<int> StoredBytes(const KernelGroup& group) const {
    std::vector<int> stored;
    const std::vector<int> nodes = group.Nodes();
    if (group.tail >= 0) return stored;
    for (const int node : nodes) {
      if (node == group.anchor) continue;
      const int value = NodeAt(node).results[0];
      bool is_there = false;
      for (const PlanOutput& output : plan_.outputs) {
        if (output.value.index != value) continue;
        stored.push_back(static_cast<int>(ElementSize(output.dtype)));
        is_there |= output.dtype == plan_.values[value].desc.dtype;
      }
      bool is_read = false;
      for (size_t i = 0; i < plan_.nodes.size(); ++i) {
        const int reader = static_cast<int>(i);
        is_read |= !Contains(nodes, reader) && NodeAt(reader).Reads(value);
      }
      if (is_read && !is_there) stored.push_back(BytesOf(value));
    }
    return stored;
  }

  const LoweredPlan& plan_;
  const Target& target_;
  const int rank_;
  const bool freely_;
  std::vector<RowGroup> groups_;
};

}  // namespace

std::vector<RowGroup> KeepRowsOnChip(const LoweredPlan& plan,
                                     const Target& target,
                                     std::vector<KernelGroup> groups, int rank,
                                     bool freely) {
  return RowMerging(plan, target, std::move(groups), rank, freely).Run();
}

}  // namespace kiln
