#include "jit/compile/join_images.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "jit/compile/reshape_images.h"

namespace kiln {
namespace {

constexpr size_t kRank = 4;
// Pixels of several rows, of which tiles have whole ones: fewer leave them less
// to choose from than pixels of one do.
constexpr int64_t kFewestInRow = 32;

// By 24 plans on an H100: microseconds that a convolution gains for each 10^9
// multiply-adds, that a kernel takes and each 10^6 elements that it moves, and
// that results are stored later, one by one, for each 10^6.
constexpr double kGain = 1.6;
constexpr double kJoinLaunch = 2.2;
constexpr double kJoinMoved = 0.9;
constexpr double kStoredApart = 1.0;

double Millions(const Dims& dims) {
  return static_cast<double>(NumElements(dims)) * 1e-6;
}

class Joining {
 public:
  Joining(LoweredPlan plan, bool always, const std::set<int>& apart)
      : plan_(std::move(plan)), always_(always), apart_(apart) {}

  LoweredPlan Run() && {
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      if (IsToBeJoined(plan_.nodes[i])) convs_.insert(static_cast<int>(i));
    }
    do {
      FindJoined();
    } while (!always_ && LeaveWhatDoesNotPay());
    if (!convs_.empty()) Rebuild();
    return std::move(plan_);
  }

 private:
  const Dims& DimsOf(int value) const { return plan_.values[value].desc.dims; }
  bool IsJoined(int value) const { return joined_.count(value) > 0; }

  static Dims JoinedDims(const Dims& dims) {
    return {1, dims[1], dims[0], dims[2] * dims[3]};
  }

  bool IsToBeJoined(const Node& node) const {
    if (!HasOneTap(plan_, node) || node.direct) return false;
    if (apart_.count(node.results[0]) > 0) return false;
    const TensorDesc& input = plan_.values[ValueOf(node.operands[0])].desc;
    const Dims& dims = input.dims;
    if (input.dtype == DataType::kF32 || dims[0] == 1) return false;
    if (dims[2] * dims[3] % 4 == 0 || dims[2] * dims[3] == 1) return false;
    return std::get<ConvAttributes>(node.attributes).groups == 1 &&
           RowsOf(dims).has_value() && !IsReducedBehind(plan_, node);
  }
  // Of joined images: long ones or, if there are none, a single one.
  static std::optional<Pair> RowsOf(const Dims& dims) {
    const Dims joined = JoinedDims(dims);
    std::optional<Pair> rows = RowsFor({joined[2], joined[3]});
    if (rows && (*rows)[1] < kFewestInRow) {
      rows = Pair{1, (*rows)[0] * (*rows)[1]};
    }
    return rows;
  }

  // Whether there was any convolution that gains less than it costs.
  bool LeaveWhatDoesNotPay() {
    return std::erase_if(
               convs_, [&](int conv) { return !Pays(plan_.nodes[conv]); }) > 0;
  }
  bool Pays(const Node& conv) const {
    const int input = ValueOf(conv.operands[0]);
    const Dims& result = DimsOf(conv.results[0]);
    const double products =
        Millions(result) * static_cast<double>(DimsOf(input)[1]) * 1e-3;
    double cost = 0.0;
    if (!IsJoined(input)) {
      const double move = kJoinLaunch + kJoinMoved * Millions(DimsOf(input));
      cost += move / CountReaders(input);
    }
    if (!IsJoined(conv.results[0])) cost += kStoredApart * Millions(result);
    return kGain * products >= cost;
  }

  // Convolutions that share what is joined.
  double CountReaders(int input) const {
    return static_cast<double>(
        std::count_if(convs_.begin(), convs_.end(), [&](int conv) {
          return ValueOf(plan_.nodes[conv].operands[0]) == input;
        }));
  }

  // Those values that nobody needs otherwise: all that may be, less those that
  // somebody does, until none is left of these.
  void FindJoined() {
    joined_.clear();
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const Node& node = plan_.nodes[i];
      if (convs_.count(static_cast<int>(i)) > 0 || IsPointwiseOfJoined(node)) {
        joined_.insert(node.results[0]);
      }
    }
    for (bool is_stable = false; !is_stable;) {
      is_stable = true;
      for (const int value : std::set<int>(joined_)) {
        if (MayBeJoined(value)) continue;
        joined_.erase(value);
        is_stable = false;
      }
    }
  }

  bool MayBeJoined(int value) const {
    const Node& producer = plan_.nodes[plan_.values[value].producer];
    if (!producer.IsConvolution() && !IsPointwiseOfJoined(producer)) {
      return false;
    }
    if (plan_.AnyIsOutput({value})) return false;
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const Node& node = plan_.nodes[i];
      if (!node.Reads(value)) continue;
      const bool is_of_joined = convs_.count(static_cast<int>(i)) > 0
                                    ? ValueOf(node.operands[0]) == value
                                    : IsJoined(node.results[0]);
      if (!is_of_joined) return false;
    }
    return true;
  }

  // Whether an op makes elements of joined ones of the same image, and of
  // numbers that are the same for all of a channel.
  bool IsPointwiseOfJoined(const Node& node) const {
    if (node.kind != NodeKind::kPointwise) return false;
    const Dims& all = DimsOf(node.results[0]);
    if (all.size() != kRank) return false;
    const bool is_norm = node.op == OpKind::kBatchNorm;
    bool is_of_joined = false;
    for (size_t i = 0; i < (is_norm ? 1 : node.operands.size()); ++i) {
      const int value = ValueOf(node.operands[i]);
      if (value < 0) continue;
      if (IsJoined(value)) {
        if (DimsOf(value) != all) return false;
        is_of_joined = true;
      } else if (!IsOfChannels(value)) {
        return false;
      }
    }
    return is_of_joined;
  }
  bool IsOfChannels(int value) const {
    const Dims4 dims = AlignDims(DimsOf(value));
    return dims[0] * dims[2] * dims[3] == 1;
  }

  void Rebuild() {
    std::vector<Node> nodes = std::move(plan_.nodes);
    plan_.nodes.clear();
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (convs_.count(static_cast<int>(i)) > 0) Join(&nodes[i]);
      plan_.AddNode(std::move(nodes[i]));
    }
    for (const int value : joined_) {
      Dims* const dims = &plan_.values[value].desc.dims;
      *dims = JoinedDims(*dims);
    }
  }

  // Gives a convolution joined images.
  void Join(Node* conv) {
    const int input = ValueOf(conv->operands[0]);
    conv->image = RowsOf(DimsOf(input));
    if (IsJoined(input)) return;
    const auto [made, is_new] = joins_.try_emplace(input);
    if (is_new) made->second = AddJoin(input);
    conv->operands[0] = ValueId{made->second};
  }

  int AddJoin(int input) {
    const int joined =
        plan_.AddLike(input, "_joined", JoinedDims(DimsOf(input)));
    plan_.AddMove(NodeKind::kJoin, input, joined);
    return joined;
  }

  LoweredPlan plan_;
  const bool always_;
  const std::set<int>& apart_;
  std::set<int> convs_;       // nodes
  std::set<int> joined_;      // values that are of joined images themselves
  std::map<int, int> joins_;  // of others, the value that a node makes of them
};

}  // namespace

LoweredPlan JoinImages(LoweredPlan plan, ImageUse use,
                       const std::set<int>& apart) {
  if (use == ImageUse::kNowhere) return plan;
  return Joining(std::move(plan), use == ImageUse::kWherever, apart).Run();
}

}  // namespace kiln
