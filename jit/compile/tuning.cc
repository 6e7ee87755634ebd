#include "jit/compile/tuning.h"

#include <algorithm>
#include <charconv>

#include "fmt/format.h"
#include "jit/compile/errors.h"
#include "jit/compile/join_images.h"
#include "jit/compile/linear_tile.h"
#include "jit/compile/mosaic_images.h"
#include "jit/compile/schedule.h"
#include "jit/compile/schedule_candidates.h"

namespace kiln {
namespace {

constexpr std::string_view kAuto = "auto";
constexpr std::string_view kSeparator = "+";
// Of a convolution. Each is compiled and measured.
constexpr int kTriedLayouts = 6;
constexpr int kTriedTiles = 4;  // of a linear layer

struct Choice {
  std::string_view name;
  int Tuning::*rank;
  int most;
};
constexpr Choice kChoices[] = {{"conv", &Tuning::conv, kMaxTuningRank},
                               {"rows", &Tuning::rows, kMaxTuningRank},
                               {"images", &Tuning::images, 2},
                               {"correlations", &Tuning::correlations, 1},
                               {"linear", &Tuning::linear, kMaxTuningRank}};

// Takes "conv7" off the front of `text`. False if something else is there.
bool TakeRank(const Choice& choice, std::string_view* text, int* rank) {
  if (!text->starts_with(choice.name)) return false;
  const char* const begin = text->data() + choice.name.size();
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(begin, end, *rank);
  if (error != std::errc() || *begin == '0') return false;
  if (*rank < 1 || *rank > choice.most) return false;
  text->remove_prefix(static_cast<size_t>(stop - text->data()));
  return true;
}

// Takes "+" off the front if more follows. False if something else is there.
bool TakeSeparator(std::string_view* text) {
  if (text->empty()) return true;
  if (!text->starts_with(kSeparator)) return false;
  text->remove_prefix(kSeparator.size());
  return !text->empty();
}

// Layouts that fit a convolution of a schedule.
int CountLayouts(const CanonicalPlan& plan, const Target& target,
                 const Schedule& schedule) {
  const ConvOptions options = {plan.plan.grade, target, 0, nullptr};
  int most = 0;
  for (const Kernel& kernel : schedule.kernels) {
    if (!kernel.conv || !kernel.computes()) continue;
    most =
        std::max(most, CountFitting(ConvCandidates(schedule, kernel, options)));
  }
  return most;
}

// Of Tuning::conv; `first`: the models' choice. What holds images fits other
// layouts than what does not.
int CountRanks(const CanonicalPlan& plan, const Target& target,
               const Schedule& first) {
  const int before = first.RanksBeforeTiles();
  const int layouts =
      before == 0 ? CountLayouts(plan, target, first)
                  : CountLayouts(plan, target,
                                 MakeSchedules(plan, target, Room::kTight,
                                               {.conv = before})
                                     .front());
  return before + std::min(layouts, kTriedLayouts);
}

// Convolutions of images that were moved.
int64_t CountMoved(const LoweredPlan& plan) {
  return std::count_if(plan.nodes.begin(), plan.nodes.end(),
                       [&](const Node& node) {
                         if (node.kind == NodeKind::kCut) return true;
                         if (!node.image) return false;
                         const int input = ValueOf(node.operands[0]);
                         return plan.values[input].desc.dims[0] == 1;
                       });
}

// Of Tuning::linear.
int CountWays(const LoweredPlan& plan, Grade grade, const Target& target) {
  size_t most = 0;
  for (const Node& node : plan.nodes) {
    if (!node.direct) continue;
    most = std::max(most, LinearWays(plan, node, grade, target).size());
  }
  return static_cast<int>(std::min<size_t>(most, kTriedTiles));
}

Tuning With(ImageUse use) { return {.images = static_cast<int>(use)}; }

// Whether there are images that could be moved, and are not.
bool LeavesImages(const CanonicalPlan& plan, const Target& target,
                  const Schedule& schedule) {
  const LoweredPlan all = JoinImages(
      MosaicImages(Lower(plan), plan.plan.grade, target, ImageUse::kWherever),
      ImageUse::kWherever, {});
  if (CountMoved(all) == 0) return false;
  const std::vector<Schedule> moved =
      MakeSchedules(plan, target, Room::kTight, With(ImageUse::kWherever));
  return CountMoved(moved.front().lowered) > CountMoved(schedule.lowered);
}

// Whether there are statistics that could come from correlations, and do not.
bool LeavesCorrelations(const CanonicalPlan& plan, const Target& target,
                        const Schedule& schedule) {
  const std::vector<Schedule> all =
      MakeSchedules(plan, target, Room::kTight, {.correlations = 1});
  return all.front().CountCorrelations() > schedule.CountCorrelations();
}

}  // namespace

std::string ToString(const Tuning& tuning) {
  if (tuning == Tuning{}) return std::string(kAuto);
  if (tuning.eager) return std::string(kEagerVariant);
  std::string text;
  for (const Choice& choice : kChoices) {
    const int rank = tuning.*choice.rank;
    if (rank == 0) continue;
    text += fmt::format("{}{}{}", text.empty() ? "" : kSeparator, choice.name,
                        rank);
  }
  return text;
}

absl::StatusOr<Tuning> ParseTuning(std::string_view variant) {
  Tuning tuning;
  if (variant == kAuto) return tuning;
  if (variant == kEagerVariant) {
    tuning.eager = true;
    return tuning;
  }
  std::string_view rest = variant;
  for (const Choice& choice : kChoices) {
    if (TakeRank(choice, &rest, &(tuning.*choice.rank)) &&
        !TakeSeparator(&rest)) {
      return UnknownVariant(variant);
    }
  }
  if (!rest.empty() || tuning == Tuning{}) return UnknownVariant(variant);
  return tuning;
}

std::vector<Tuning> Alternatives(const CanonicalPlan& plan,
                                 const Target& target, size_t limit) {
  std::vector<Tuning> alternatives = {Tuning{}};
  if (target.is_cpu()) return alternatives;
  const Schedule first = MakeSchedules(plan, target).front();
  const int conv = CountRanks(plan, target, first);
  int rows = 0;
  for (const Kernel& kernel : first.kernels) {
    if (!kernel.row_work) continue;
    rows = std::max(rows, CountFitting(RowCandidates(kernel, target)));
  }
  const int linear = CountWays(first.lowered, plan.plan.grade, target);
  for (int rank = 1; rank < std::max({conv, rows, linear}); ++rank) {
    if (rank < conv) alternatives.push_back({rank, 0});
    if (rank < linear) alternatives.push_back({.linear = rank});
    if (rank < rows) alternatives.push_back({0, rank});
  }
  if (CountMoved(first.lowered) > 0) {
    alternatives.insert(alternatives.begin() + 1, With(ImageUse::kNowhere));
  }
  if (LeavesImages(plan, target, first)) {
    alternatives.insert(alternatives.begin() + 1, With(ImageUse::kWherever));
  }
  if (LeavesCorrelations(plan, target, first)) {
    alternatives.insert(alternatives.begin() + 1, Tuning{.correlations = 1});
  }
  if (alternatives.size() > limit) alternatives.resize(limit);
  return alternatives;
}

}  // namespace kiln
