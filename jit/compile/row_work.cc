#include "jit/compile/row_work.h"

#include <algorithm>
#include <map>
#include <utility>

#include "jit/compile/reduce_geometry.h"
#include "jit/compile/row_chains.h"
#include "jit/compile/schedule.h"

namespace kiln {
namespace {

constexpr int kF32Bytes = 4;
// Operations that are rather computed twice than that 16-bit values are kept in
// f32, or that elements that are used as they are are read twice.
constexpr size_t kMaxComputedAgain = 2;
// Powers of rows of 16 bits are rather computed twice than that one row takes
// more of a multiprocessor's shared memory than leaves room for another.
constexpr int64_t kMaxPowerBytes = 100 * 1024;

bool Contains(const std::vector<int>& list, int item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

class Weighing {
 public:
  explicit Weighing(const LoweredPlan& plan) : plan_(plan) {}

  RowWork WorkOfRows(const KernelGroup& group) const {
    RowWork work = WorkOf(group);
    const Node& statistic = NodeAt(group.anchor);
    work.publishes = group.tail < 0 && IsOfNorm(statistic);
    if (group.tail >= 0) {
      work.segment = ViewOfInput(NodeAt(group.tail)).reduced0;
    }
    work.epilogue = static_cast<int>(group.epilogue.size());
    ChooseKept(group, &work);
    work.shortest = work.length;
    work.held_values = HeldValues(group);
    work.has_pure_numbers = HasPureNumbers(group);
    return work;
  }

  RowWork WorkOfChain(const KernelGroup& joined,
                      const std::vector<KernelGroup>& apart) const {
    RowWork work = WorkOf(joined);
    SpanLinks(joined, &work);
    work.kept_bytes = KeptBytes(joined, work.staged);
    work.held_values = HeldValues(joined);
    if (IsOnePass(joined, work)) {
      const RowValues values(plan_, joined);
      for (const int link : values.links()) {
        work.pass_state_bytes += ReducerStateBytes(NodeAt(link));
      }
    }
    work.epilogue = static_cast<int>(joined.epilogue.size());
    work.beside_bytes = BesideBytes(joined);
    for (KernelGroup group : apart) {
      group.domain = joined.domain;
      for (const int value : StagedOf(group))
        work.apart_bytes += BytesOf(value);
      for (const int bytes : StoredBytes(group)) work.apart_bytes += bytes;
    }
    work.apart_kernels = static_cast<int>(apart.size());
    return work;
  }

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

 private:
  const Node& NodeAt(int index) const { return plan_.nodes[index]; }
  const Dims& DimsOf(int value) const { return plan_.values[value].desc.dims; }
  // By the rank that its input has; the group's domain may have another.
  ReduceView ViewOfInput(const Node& reduction) const {
    return ViewOf(reduction, DimsOf(ValueOf(reduction.operands[0])));
  }
  int BytesOf(int value) const {
    return static_cast<int>(ElementSize(plan_.values[value].desc.dtype));
  }

  // What norms and chains have in common.
  RowWork WorkOf(const KernelGroup& group) const {
    const ReduceView view = ViewOf(NodeAt(group.anchor), group.domain);
    RowWork work;
    work.rows = view.outputs();
    work.length = view.steps();
    if (view.reduced1 > 1) {
      work.run = view.reduced1;
    } else {
      work.pitch = view.kept1;
    }
    work.staged = StagedOf(group);
    for (const int value : work.staged) {
      work.staged_bytes.push_back(BytesOf(value));
    }
    work.comes_first =
        std::all_of(work.staged.begin(), work.staged.end(),
                    [&](int value) { return value < plan_.num_inputs; });
    work.stored_bytes = StoredBytes(group);
    const std::vector<int> nodes = group.Nodes();
    work.is_read_next = std::any_of(nodes.begin(), nodes.end(), [&](int node) {
      return IsReadOutside(plan_, nodes, NodeAt(node).results[0]);
    });
    work.prologue = static_cast<int>(group.prologue.size());
    return work;
  }

  // The statistic, and of the prologue what makes its operand.
  KernelGroup UpToStatistic(const KernelGroup& group) const {
    KernelGroup reading;
    reading.anchor = group.anchor;
    reading.domain = group.domain;
    for (auto node = group.prologue.rbegin(); node != group.prologue.rend();
         ++node) {
      if (!AnyReads(plan_, reading.Nodes(), ValuesMade(plan_, {*node}))) {
        continue;
      }
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

  // Of operands with fewer elements, but as many columns.
  int BesideBytes(const KernelGroup& group) const {
    const Dims4 domain = AlignDims(group.domain);
    int bytes = 0;
    for (const int value : ValuesRead(plan_, group)) {
      const Dims4 dims = AlignDims(DimsOf(value));
      if (dims != domain && domain[3] > 1 && dims[3] == domain[3]) {
        bytes += BytesOf(value);
      }
    }
    return bytes;
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
    const bool are_few = work->length * kF32Bytes <= kMaxPowerBytes;
    const bool keeps_powers =
        of_powers && (work->pitch > 1 || bytes == kF32Bytes || are_few);
    const bool may_again =
        !keeps_powers && reading.prologue.size() <= kMaxComputedAgain;
    work->is_read_beside =
        !reading.prologue.empty() && IsReadBeside(read[0], group, reading);
    work->reads_again =
        may_again && (bytes != kF32Bytes || work->is_read_beside);
    work->copies = bytes == kF32Bytes || work->reads_again;
    if (work->copies) work->kept_bytes = bytes;
  }

  // The rows are those of the reduction that has the longest.
  void SpanLinks(const KernelGroup& joined, RowWork* work) const {
    const int64_t elements = work->rows * work->length;
    const std::vector<int> links = RowValues(plan_, joined).links();
    work->reductions = static_cast<int>(links.size());
    work->shortest = work->length;
    for (const int link : links) {
      const int64_t length = ViewOfInput(NodeAt(link)).steps();
      work->length = std::max(work->length, length);
      work->shortest = std::min(work->shortest, length);
    }
    work->rows = elements / work->length;
  }

  // Whether elements are made of nothing that reductions give, and not stored.
  bool IsOnePass(const KernelGroup& joined, const RowWork& work) const {
    if (!work.stored_bytes.empty() || work.shortest < work.length) return false;
    const RowValues values(plan_, joined);
    const std::vector<int> nodes = joined.Nodes();
    return std::all_of(nodes.begin(), nodes.end(), [&](int node) {
      const bool is_element = NodeAt(node).kind == NodeKind::kPointwise &&
                              !values.IsOfRow(NodeAt(node));
      const std::vector<Operand>& operands = NodeAt(node).operands;
      return !(is_element || NodeAt(node).kind == NodeKind::kReduce) ||
             std::all_of(operands.begin(), operands.end(),
                         [&](const Operand& operand) {
                           return values.LinkOf(ValueOf(operand)) < 0;
                         });
    });
  }

  // Bytes of an element of those of `staged` that reductions are made of.
  int KeptBytes(const KernelGroup& joined,
                const std::vector<int>& staged) const {
    const RowValues values(plan_, joined);
    std::vector<int> needed;
    const std::vector<int> nodes = joined.Nodes();
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      const std::vector<int>& results = NodeAt(*node).results;
      const bool is_needed =
          values.IsOfRow(NodeAt(*node)) ||
          std::any_of(results.begin(), results.end(),
                      [&](int result) { return Contains(needed, result); });
      if (!is_needed) continue;
      for (const Operand& operand : NodeAt(*node).operands) {
        needed.push_back(ValueOf(operand));
      }
    }
    int bytes = 0;
    for (const int value : staged) {
      if (Contains(needed, value)) bytes += BytesOf(value);
    }
    return bytes;
  }

  // What each reduction is taken of, then what is stored.
  std::vector<std::vector<int>> RootsOf(const KernelGroup& joined,
                                        const RowValues& values) const {
    std::vector<std::vector<int>> roots;
    for (const int link : values.links()) {
      roots.push_back({ValueOf(NodeAt(link).operands[0])});
    }
    roots.emplace_back();
    const std::vector<int> nodes = joined.Nodes();
    for (const int node : nodes) {
      const int value = NodeAt(node).results[0];
      if (plan_.AnyIsOutput({value}) || IsReadOutside(plan_, nodes, value)) {
        roots.back().push_back(value);
      }
    }
    return roots;
  }

  int HeldValues(const KernelGroup& joined) const {
    const RowValues values(plan_, joined);
    const std::vector<int> nodes = joined.Nodes();
    std::map<int, size_t> made, last;  // of element values: by which root
    const std::vector<std::vector<int>> roots = RootsOf(joined, values);
    for (size_t i = 0; i < roots.size(); ++i) {
      std::vector<int> wanted = roots[i];
      while (!wanted.empty()) {
        const int value = wanted.back();
        wanted.pop_back();
        if (value < 0 || values.LinkOf(value) >= 0) continue;
        last[value] = i;
        const int producer = plan_.values[value].producer;
        if (!made.emplace(value, i).second || !Contains(nodes, producer)) {
          continue;
        }
        for (const Operand& operand : NodeAt(producer).operands) {
          wanted.push_back(ValueOf(operand));
        }
      }
    }
    int most = 0;
    for (size_t i = 0; i < roots.size(); ++i) {
      const auto held = std::count_if(
          made.begin(), made.end(), [&](const std::pair<int, size_t>& value) {
            return value.second <= i && i < last[value.first];
          });
      most = std::max(most, static_cast<int>(held));
    }
    return most;
  }

  bool HasPureNumbers(const KernelGroup& group) const {
    const RowValues values(plan_, group);
    const auto is_number = [&](int value) { return values.LinkOf(value) >= 0; };
    return std::all_of(group.epilogue.begin(), group.epilogue.end(),
                       [&](int node) {
                         return !values.IsOfRow(NodeAt(node)) ||
                                NodeAt(node).ReadsOnly(is_number);
                       });
  }

  // Bytes of everything of an element that `group` leaves in memory.
  std::vector<int> StoredBytes(const KernelGroup& group) const {
    std::vector<int> stored;
    const std::vector<int> nodes = group.Nodes();
    if (group.tail >= 0) return stored;
    for (const int node : nodes) {
      const int value = NodeAt(node).results[0];
      const bool is_element =
          node != group.anchor &&
          AlignDims(DimsOf(value)) == AlignDims(group.domain);
      if (!is_element) continue;
      bool is_there = false;
      for (const PlanOutput& output : plan_.outputs) {
        if (output.value.index != value) continue;
        stored.push_back(static_cast<int>(ElementSize(output.dtype)));
        is_there |= output.dtype == plan_.values[value].desc.dtype;
      }
      if (!is_there && IsReadOutside(plan_, nodes, value)) {
        stored.push_back(BytesOf(value));
      }
    }
    return stored;
  }

  const LoweredPlan& plan_;
};

}  // namespace

RowWork WorkOfRows(const LoweredPlan& plan, const KernelGroup& group) {
  return Weighing(plan).WorkOfRows(group);
}

bool UsesRows(const LoweredPlan& plan, const KernelGroup& group) {
  return Weighing(plan).UsesRows(group);
}

RowWork WorkOfChain(const LoweredPlan& plan, const KernelGroup& joined,
                    const std::vector<KernelGroup>& apart) {
  return Weighing(plan).WorkOfChain(joined, apart);
}

}  // namespace kiln
