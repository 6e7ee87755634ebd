#include "jit/compile/conv_fusion.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "jit/compile/commute_pooling.h"
#include "jit/compile/conv_cost.h"
#include "jit/compile/conv_demands.h"
#include "jit/compile/conv_search.h"
#include "jit/compile/conv_softmax.h"
#include "jit/compile/reduce_geometry.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// Channels that one block can hold of each pixel.
constexpr int64_t kMaxChannelsOfBlock = 256;

bool Contains(const std::set<int>& set, int value) {
  return set.count(value) > 0;
}

class Fusing {
 public:
  Fusing(const LoweredPlan& plan, std::vector<KernelGroup> groups,
         const ConvOptions& options, int rank)
      : plan_(plan), options_(options), rank_(rank) {
    fusion_.groups = std::move(groups);
  }

  ConvFusion Run() && {
    for (size_t i = 0; i < fusion_.groups.size(); ++i) {
      if (IsToBeFused(fusion_.groups[i])) Fuse(static_cast<int>(i));
    }
    std::erase_if(fusion_.groups,
                  [](const KernelGroup& group) { return group.IsEmpty(); });
    return std::move(fusion_);
  }

 private:
  const Node& NodeAt(int index) const { return plan_.nodes[index]; }
  const Dims& DimsOf(int value) const { return plan_.values[value].desc.dims; }
  KernelGroup& Group(int index) { return fusion_.groups[index]; }

  bool IsToBeFused(const KernelGroup& group) const {
    if (group.anchor < 0 || group.tail >= 0) return false;
    return !Contains(done_, group.anchor) &&
           NodeAt(group.anchor).IsConvolution() && !NodeAt(group.anchor).direct;
  }

  // With a softmax over its channels, if that can be a part of its kernel and
  // takes less time there. Of 16-bit operands models say too little to ask.
  void Fuse(int conv) {
    const int anchor = Group(conv).anchor;
    done_.insert(anchor);
    const ConvFusion before = fusion_;
    if (!GatherSoftmax(plan_, conv, &fusion_.groups)) {
      return FuseUsers(conv, anchor);
    }
    FuseUsers(conv, anchor);
    const bool is_gathered = std::none_of(fusion_.groups.begin(),
                                          fusion_.groups.end(), IsLeftGathered);
    if (is_gathered && ConvProblemOf(plan_, NodeAt(anchor)).takes_as_stored()) {
      return;
    }
    ConvFusion gathered = std::exchange(fusion_, before);
    FuseUsers(conv, anchor);
    if (is_gathered && !IsFasterThan(gathered, anchor)) {
      fusion_ = std::move(gathered);
    }
  }

  // Whether what the softmax is taken of goes through memory in less time than
  // it takes longer in the convolution's kernel. Only asked where that is
  // computed once.
  bool IsFasterThan(const ConvFusion& gathered, int anchor) const {
    const double together = CyclesOf(gathered, anchor);
    const double apart = CyclesOf(fusion_, anchor);
    if (together == 0.0 || apart == 0.0) return false;
    return apart + CyclesThroughMemory(anchor) < together;
  }

  // Of a kernel more, which reads what the convolution has written.
  double CyclesThroughMemory(int anchor) const {
    const Dims& dims = DimsOf(NodeAt(anchor).results[0]);
    const double bytes = 2.0 * sizeof(float) * NumElements(dims);
    return kCyclesOfLaunch +
           bytes / (kMovedBytesPerCycle * options_.target.sm_count);
  }
  double CyclesOf(const ConvGeometry& geometry,
                  const ConvDemands& demands) const {
    return ConvCycles(geometry, demands, options_.target);
  }

  // Of the kernel of a convolution; 0 where there is not one.
  double CyclesOf(const ConvFusion& fusion, int anchor) const {
    double cycles = 0.0;
    int kernels = 0;
    for (const auto& [nodes, geometry] : fusion.geometry) {
      if (nodes.first != anchor) continue;
      ++kernels;
      cycles = CyclesOf(geometry, fusion.demands.at(nodes));
    }
    return kernels == 1 ? cycles : 0.0;
  }

  static bool IsLeftGathered(const KernelGroup& group) {
    return !group.shares.empty() && group.tail < 0;
  }

  void FuseUsers(int conv, int anchor) {
    const ConvProblem problem = ConvProblemOf(plan_, NodeAt(anchor));

    // With all that can join, else with the first, else alone.
    std::vector<int> users = UsersOf(conv);
    if (TryJoinEarlyPooling(conv, users, problem)) return;
    // Which has no way to know signs but beside the statistics.
    std::erase_if(users, [&](int user) { return PoolsEarly(user); });
    const bool again = users.size() > 1 && IsCheap(problem) &&
                       std::all_of(users.begin(), users.end(), [&](int user) {
                         return CanJoin(conv, user);
                       });
    std::vector<int> joining = users;
    if (!again && users.size() > 1) joining = {users.front()};
    while (!joining.empty() && !TryJoin(conv, joining, problem)) {
      joining = joining.size() > 1 ? std::vector<int>{joining.front()}
                                   : std::vector<int>{};
    }
    if (!joining.empty()) return;
    const ConvDemands demands = DemandsOf(conv, {}, false);
    const auto geometry = Choose(problem, demands);
    if (geometry.has_value()) Take(anchor, -1, *geometry, demands);
  }

  bool IsCheap(const ConvProblem& problem) const {
    return ProductsPerElement(problem, options_.grade) <
           ProductsPerRoundTrip(problem);
  }

  std::optional<ConvGeometry> Choose(const ConvProblem& problem,
                                     const ConvDemands& demands) const {
    return ChooseConvGeometryOfRank(problem, demands, options_, rank_);
  }

  void Take(int anchor, int tail, const ConvGeometry& geometry,
            const ConvDemands& demands) {
    fusion_.geometry[{anchor, tail}] = geometry;
    fusion_.demands[{anchor, tail}] = demands;
  }

  std::vector<int> UsersOf(int conv) const {
    const std::set<int> values = ElementsOf(plan_, fusion_.groups[conv]);
    std::vector<int> users;
    for (size_t i = 0; i < fusion_.groups.size(); ++i) {
      const int index = static_cast<int>(i);
      if (index != conv && AnyReads(plan_, fusion_.groups[i].Nodes(), values)) {
        users.push_back(index);
      }
    }
    return users;
  }

  // Whether what `user` does to the convolution's elements can follow it in
  // registers. Its epilogue must not need them.
  bool CanJoin(int conv, int user) const {
    const KernelGroup& group = fusion_.groups[user];
    const Dims& domain = fusion_.groups[conv].domain;
    if (group.tail >= 0 || Contains(done_, group.anchor)) return false;
    if (domain.size() != 4) return false;
    if (group.anchor < 0) return group.domain == domain;
    const Node& anchor = NodeAt(group.anchor);
    if (DimsOf(ValueOf(anchor.operands[0])) != domain) return false;
    if (anchor.op == OpKind::kSoftmax && group.shares.empty()) return false;
    std::set<int> inner = ElementsOf(plan_, fusion_.groups[conv]);
    inner.merge(ValuesMade(plan_, group.prologue));
    return IsTail(fusion_.groups[conv], anchor) &&
           !AnyReads(plan_, group.epilogue, inner);
  }

  bool IsTail(const KernelGroup& conv, const Node& node) const {
    const int64_t channels = conv.domain[1];
    if (node.kind == NodeKind::kPool2d) return CanPoolTiles(plan_, node);
    if (node.kind != NodeKind::kReduce) return false;
    const auto& attributes =
        std::get<ConvAttributes>(NodeAt(conv.anchor).attributes);
    if (attributes.groups != 1) return false;
    if (ChannelsOfState(node, conv.domain) > 0) return true;
    const ReduceView view = ViewOf(node, conv.domain);
    return channels <= kMaxChannelsOfBlock && view.reduced0 == channels &&
           channels > 1 && view.kept0 == conv.domain[0] && view.reduced1 == 1;
  }

  // `stores`: others read the elements from memory.
  ConvDemands DemandsOf(int conv, const std::vector<int>& joining,
                        bool stores) const {
    std::vector<const KernelGroup*> groups;
    for (const int user : joining) groups.push_back(&fusion_.groups[user]);
    return ConvDemandsOf(plan_, fusion_.groups[conv], groups, stores);
  }

  // Lets all of `joining` begin with the convolution, if a tile exists that
  // suits them. The first takes it over; the others compute it again.
  bool TryJoin(int conv, const std::vector<int>& joining,
               const ConvProblem& problem) {
    if (!std::all_of(joining.begin(), joining.end(),
                     [&](int user) { return CanJoin(conv, user); })) {
      return false;
    }
    if (joining.size() == 1 && UsersOf(conv).size() > 1 &&
        Group(joining[0]).anchor < 0) {
      return false;
    }
    const bool stores = UsersOf(conv).size() > joining.size();
    std::vector<ConvDemands> demands;
    std::vector<ConvGeometry> geometries;
    for (const int user : joining) {
      demands.push_back(DemandsOf(conv, {user}, stores));
      const auto geometry =
          geometries.empty()
              ? Choose(problem, demands.back())
              : ChooseBeside(problem, geometries.front(), &demands.back());
      if (!geometry.has_value()) return false;
      if (!SuitsWindows(*geometry, demands.back())) return false;
      if (IsSlowerThanAlone(conv, problem, *geometry, demands.back())) {
        return false;
      }
      geometries.push_back(*geometry);
    }
    const KernelGroup source = Group(conv);
    for (size_t i = 0; i < joining.size(); ++i) {
      KernelGroup* const user = &Group(joining[i]);
      Join(source, user);
      Take(source.anchor, user->tail, geometries[i], demands[i]);
    }
    Group(conv) = {};
    return true;
  }

  // Whether warps alone can compute the convolution with what is behind it, or
  // warpgroups by parts of the filter, and warpgroups it alone in so much less
  // time that elements may go through memory.
  bool IsSlowerThanAlone(int conv, const ConvProblem& problem,
                         const ConvGeometry& joined,
                         const ConvDemands& demands) const {
    if (options_.target.arch != "sm_90a") return false;
    if (joined.has_groups() && joined.row_parts == 1) return false;
    const ConvDemands of_elements = DemandsOf(conv, {}, false);
    const auto alone = Choose(problem, of_elements);
    if (!alone.has_value() || !alone->has_groups()) return false;
    return CyclesOf(*alone, of_elements) +
               CyclesThroughMemory(fusion_.groups[conv].anchor) <
           CyclesOf(joined, demands);
  }

  // Elements that windows of several tiles share are computed by each of these.
  // Pooling is left to a kernel of its own where that costs more than a round
  // trip through memory, or where others read the elements, too: some of these
  // may be in no window, and so in no tile.
  bool SuitsWindows(const ConvGeometry& g, const ConvDemands& demands) const {
    if (!g.windows.lay_out_tiles()) return true;
    if (demands.stores && !demands.has_statistics) return false;
    const double all =
        ComputedOf(g, 0, g.part_step()) * ComputedOf(g, 1, g.step(1));
    const auto products =
        static_cast<double>(ProductsPerElement(g.problem, options_.grade));
    return (all - 1.0) * products <
           static_cast<double>(ProductsPerRoundTrip(g.problem));
  }

  // How often rows, or columns, are computed in the mean, by tiles or parts of
  // tiles that begin `step` apart.
  static double ComputedOf(const ConvGeometry& g, size_t axis, int64_t step) {
    const int64_t shared =
        (CeilDiv(g.extent(axis), step) - 1) * g.windows.overlap(axis);
    return 1.0 +
           static_cast<double>(shared) / static_cast<double>(g.extent(axis));
  }

  // The best that reads the weights that another kernel has packed, or one that
  // is faster by more than a packing of its own. Says in `demands` which it is.
  std::optional<ConvGeometry> ChooseBeside(const ConvProblem& problem,
                                           const ConvGeometry& packed,
                                           ConvDemands* demands) const {
    ConvDemands sharing = *demands;
    sharing.packing = packed.packing();
    const auto geometry = Choose(problem, sharing);
    if (geometry.has_value() && geometry->packing() == packed.packing()) {
      *demands = sharing;
    }
    return geometry;
  }

  bool PoolsEarly(int user) const {
    const int anchor = fusion_.groups[user].anchor;
    return anchor >= 0 && IsEarlyPooling(NodeAt(anchor));
  }

  // Statistics and windows of the same values, from one pass.
  bool TryJoinEarlyPooling(int conv, const std::vector<int>& users,
                           const ConvProblem& problem) {
    if (users.size() != 2) return false;
    const int pooling = PoolsEarly(users[0]) ? users[0] : users[1];
    const int statistics = PoolsEarly(users[0]) ? users[1] : users[0];
    if (!PoolsEarly(pooling) || Group(statistics).anchor < 0) return false;
    const Node& norm = NodeAt(Group(statistics).anchor);
    const Node& windows = NodeAt(Group(pooling).anchor);
    if (norm.op != OpKind::kGroupNorm || !CanJoin(conv, statistics) ||
        !CanJoin(conv, pooling) || !Group(statistics).prologue.empty() ||
        !Group(pooling).prologue.empty() ||
        ValueOf(norm.operands[0]) != ValueOf(windows.operands[0])) {
      return false;
    }
    const ConvDemands demands = DemandsOf(conv, users, false);
    const auto geometry = Choose(problem, demands);
    if (!geometry.has_value() || !SuitsWindows(*geometry, demands) ||
        IsSlowerThanAlone(conv, problem, *geometry, demands)) {
      return false;
    }
    const KernelGroup source = Group(conv);
    Join(source, &Group(statistics));
    Take(source.anchor, Group(statistics).tail, *geometry, demands);
    Group(statistics).early_pooling = Group(pooling).anchor;
    Group(pooling) = {};
    Group(conv) = {};
    return true;
  }

  static void Join(const KernelGroup& conv, KernelGroup* user) {
    KernelGroup joined = conv;
    const std::vector<int>& inner =
        user->anchor < 0 ? user->epilogue : user->prologue;
    joined.epilogue.insert(joined.epilogue.end(), inner.begin(), inner.end());
    if (user->anchor >= 0) {
      joined.tail = user->anchor;
      joined.tail_epilogue = user->epilogue;
    }
    joined.shares = user->shares;
    *user = std::move(joined);
  }

  const LoweredPlan& plan_;
  const ConvOptions& options_;
  const int rank_;
  ConvFusion fusion_;
  std::set<int> done_;  // convolutions
};

}  // namespace

int64_t ProductsOfParts(DataType input, Grade grade) {
  return grade == Grade::kFp32 && input == DataType::kF32 ? 3 : 1;
}

int64_t ProductsPerElement(const ConvProblem& problem, Grade grade) {
  return problem.group_inputs() * problem.taps() *
         ProductsOfParts(problem.input_type, grade);
}

int64_t ProductsPerRoundTrip(const ConvProblem& problem) {
  // Between 500, of a mean over channels in fp32 that is 23 % faster computed
  // again, and 770, of f16 norms that are 10 to 12 % slower (H100).
  constexpr int64_t kProductsPerEightBytes = 600;
  const auto count = [](const Dims4& dims) {
    return static_cast<double>(dims[0] * dims[1] * dims[2] * dims[3]);
  };
  const double bytes_read =
      count(problem.input) *
      static_cast<double>(ElementSize(problem.input_type)) /
      count(problem.output);
  return static_cast<int64_t>(kProductsPerEightBytes *
                              std::max(0.0, 1.0 - bytes_read / 8.0));
}

int64_t ChannelsOfState(const Node& tail, const Dims& dims) {
  if (tail.kind != NodeKind::kReduce) return 0;
  if (tail.op == OpKind::kGroupNorm) {
    return dims[1] / std::get<GroupNormAttributes>(tail.attributes).num_groups;
  }
  const ReduceView view = ViewOf(tail, dims);
  const bool is_of_images = view.kept0 == dims[0] * dims[1] &&
                            view.reduced0 == dims[2] * dims[3] &&
                            view.outputs() == view.kept0;
  const bool is_simple = tail.op == OpKind::kSum || tail.op == OpKind::kMean ||
                         tail.op == OpKind::kAmax || tail.op == OpKind::kAmin;
  return is_of_images && is_simple ? 1 : 0;
}

ConvFusion FuseConvolutions(const LoweredPlan& plan,
                            std::vector<KernelGroup> groups,
                            const ConvOptions& options, int rank) {
  return Fusing(plan, std::move(groups), options, rank).Run();
}

}  // namespace kiln
