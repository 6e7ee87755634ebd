#include "jit/compile/compute_again.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "jit/compile/pool_prologue.h"

namespace kiln {
namespace {

// Each is an instruction or a few for an element, so that all of them hide
// behind its load.
constexpr size_t kMaxOperations = 4;
// Elements that have a broadcast value in common, at least.
constexpr int64_t kManyElements = 16;
// What may be read more: the launch of a kernel takes longer.
constexpr int64_t kFewBytes = int64_t{1} << 21;

bool IsShort(const Node& node) {
  switch (node.op) {
    case OpKind::kRelu:
    case OpKind::kLeakyRelu:
    case OpKind::kHardsigmoid:
    case OpKind::kHardswish:
    case OpKind::kHardtanh:
    case OpKind::kClamp:
    case OpKind::kAbs:
    case OpKind::kNeg:
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
    case OpKind::kMinimum:
    case OpKind::kMaximum:
    case OpKind::kCast:
      return node.kind == NodeKind::kPointwise;
    default:
      return false;
  }
}

bool AreShort(const LoweredPlan& plan, const KernelGroup& group) {
  return std::all_of(group.epilogue.begin(), group.epilogue.end(),
                     [&](int node) { return IsShort(plan.nodes[node]); });
}

// Some ten instructions, which the compiler does once for what has the same
// operand.
bool IsBrief(const Node& node) {
  switch (node.op) {
    case OpKind::kSigmoid:
    case OpKind::kExp:
      return node.kind == NodeKind::kPointwise;
    default:
      return IsShort(node);
  }
}

// Whether many elements of `domain` have each of `dims` in common, among them
// neighbours.
bool AreInCommon(const Dims& dims, const Dims& domain) {
  const Dims4 few = AlignDims(dims);
  const Dims4 many = AlignDims(domain);
  for (size_t i = 0; i < few.size(); ++i) {
    if (few[i] != 1 && few[i] != many[i]) return false;
  }
  return few.back() == 1 &&
         NumElements(dims) * kManyElements <= NumElements(domain);
}

class Again {
 public:
  Again(const LoweredPlan& plan, std::vector<RowGroup> groups)
      : plan_(plan), groups_(std::move(groups)) {}

  // From the end, so that a group's readers have what they read of later ones.
  std::vector<RowGroup> Run() && {
    for (size_t i = groups_.size(); i-- > 0;) TakeApart(i);
    std::erase_if(groups_,
                  [](const RowGroup& group) { return group.group.IsEmpty(); });
    return std::move(groups_);
  }

 private:
  const Node& NodeAt(int index) const { return plan_.nodes[index]; }

  int64_t SizeOf(int value) const {
    return SizeBytes(plan_.values[value].desc);
  }

  int64_t BytesRead(const KernelGroup& group) const {
    int64_t bytes = 0;
    for (const int value : ValuesRead(plan_, group)) bytes += SizeOf(value);
    return bytes;
  }

  // Of the nodes of `source`, those that `reader` needs, in order.
  std::vector<int> NodesFor(const KernelGroup& source,
                            const KernelGroup& reader) const {
    std::vector<int> readers = reader.Nodes();
    std::vector<int> needed;
    for (auto node = source.epilogue.rbegin(); node != source.epilogue.rend();
         ++node) {
      if (!AnyReads(plan_, readers, ValuesMade(plan_, {*node}))) continue;
      readers.push_back(*node);
      needed.insert(needed.begin(), *node);
    }
    return needed;
  }

  bool MayGo(const RowGroup& source) const {
    const KernelGroup& group = source.group;
    if (source.rows || group.anchor >= 0 || group.tail >= 0) return false;
    if (group.epilogue.size() > kMaxOperations) return false;
    return std::all_of(group.epilogue.begin(), group.epilogue.end(),
                       [&](int node) {
                         return IsBrief(NodeAt(node)) &&
                                !plan_.AnyIsOutput(NodeAt(node).results);
                       });
  }

  // Whether it is worth it to compute `source` for each element of `domain`.
  // Long prologues of reductions leave fewer loads in flight.
  bool Fits(const KernelGroup& source, const Dims& domain,
            bool is_reduction) const {
    if (AlignDims(domain) == AlignDims(source.domain)) {
      return AreShort(plan_, source);
    }
    return AreInCommon(source.domain, domain) &&
           (!is_reduction || AreShort(plan_, source));
  }

  // Whether `reader` needs results of `source` as vectors of its channels,
  // which no element has.
  bool NeedsVectors(const KernelGroup& reader,
                    const KernelGroup& source) const {
    const std::vector<int> nodes = reader.Nodes();
    return std::any_of(nodes.begin(), nodes.end(), [&](int index) {
      Node node = NodeAt(index);
      if (node.op != OpKind::kBatchNorm && node.op != OpKind::kGroupNorm) {
        return false;
      }
      node.operands.erase(node.operands.begin());
      return std::any_of(
          source.epilogue.begin(), source.epilogue.end(),
          [&](int made) { return node.Reads(NodeAt(made).results[0]); });
    });
  }

  // The list of `reader` that takes the nodes of `source`, or null if there is
  // none, or what reads them does not come behind it.
  std::vector<int>* PlaceIn(const KernelGroup& source, RowGroup* reader) const {
    KernelGroup& group = reader->group;
    if (reader->rows || group.tail >= 0 || !group.finish.empty() ||
        NeedsVectors(group, source)) {
      return nullptr;
    }
    if (group.anchor < 0) {
      return Fits(source, group.domain, false) ? &group.epilogue : nullptr;
    }
    const Node& anchor = NodeAt(group.anchor);
    if (anchor.kind != NodeKind::kReduce) {
      std::vector<int> prologue = source.epilogue;
      prologue.insert(prologue.end(), group.prologue.begin(),
                      group.prologue.end());
      if (!PoolTakesPrologue(plan_, anchor, prologue)) return nullptr;
    }
    const Dims& input = plan_.values[ValueOf(anchor.operands[0])].desc.dims;
    const std::set<int> made = ValuesMade(plan_, source.epilogue);
    return Fits(source, input, true) && !AnyReads(plan_, group.epilogue, made)
               ? &group.prologue
               : nullptr;
  }

  void TakeApart(size_t index) {
    const RowGroup source = groups_[index];
    if (!MayGo(source)) return;
    std::vector<RowGroup> changed = groups_;
    changed[index].group.epilogue.clear();
    std::set<int> stored;
    int64_t bytes = BytesRead(source.group);
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (i == index) continue;
      const std::vector<int> nodes = NodesFor(source.group, groups_[i].group);
      if (nodes.empty()) continue;
      std::vector<int>* const list = PlaceIn(source.group, &changed[i]);
      if (list == nullptr) return;
      list->insert(list->begin(), nodes.begin(), nodes.end());
      bytes += BytesRead(groups_[i].group) - BytesRead(changed[i].group);
      const std::set<int> read = ValuesRead(plan_, groups_[i].group);
      for (const int node : nodes) {
        const int result = NodeAt(node).results[0];
        if (read.count(result) > 0) stored.insert(result);
      }
    }
    for (const int value : stored) bytes += SizeOf(value);
    if (bytes + kFewBytes >= 0) groups_ = std::move(changed);
  }

  const LoweredPlan& plan_;
  std::vector<RowGroup> groups_;
};

}  // namespace

bool AreFewShort(const LoweredPlan& plan, const KernelGroup& group) {
  return group.epilogue.size() <= kMaxOperations && AreShort(plan, group);
}

std::vector<RowGroup> ComputeAgain(const LoweredPlan& plan,
                                   std::vector<RowGroup> groups) {
  return Again(plan, std::move(groups)).Run();
}

}  // namespace kiln
