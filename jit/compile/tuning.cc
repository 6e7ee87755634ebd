#include "jit/compile/tuning.h"

#include <algorithm>
#include <charconv>

#include "fmt/format.h"
#include "jit/compile/errors.h"
#include "jit/compile/schedule.h"
#include "jit/compile/schedule_candidates.h"

namespace kiln {
namespace {

constexpr std::string_view kAuto = "auto";
constexpr std::string_view kConv = "conv";
constexpr std::string_view kRows = "rows";
// Of a convolution. Each is compiled and measured.
constexpr int kTriedLayouts = 6;

// Takes "conv7" off the front of `text`. False if something else is there.
bool TakeRank(std::string_view name, std::string_view* text, int* rank) {
  if (text->substr(0, name.size()) != name) return false;
  const char* const begin = text->data() + name.size();
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(begin, end, *rank);
  if (error != std::errc() || *begin == '0') return false;
  if (*rank < 1 || *rank > kMaxTuningRank) return false;
  text->remove_prefix(static_cast<size_t>(stop - text->data()));
  return true;
}

}  // namespace

std::string ToString(const Tuning& tuning) {
  if (tuning == Tuning{}) return std::string(kAuto);
  if (tuning.eager) return std::string(kEagerVariant);
  std::string text;
  if (tuning.conv > 0) text = fmt::format("{}{}", kConv, tuning.conv);
  if (tuning.rows == 0) return text;
  return fmt::format("{}{}{}{}", text, text.empty() ? "" : "+", kRows,
                     tuning.rows);
}

absl::StatusOr<Tuning> ParseTuning(std::string_view variant) {
  Tuning tuning;
  if (variant == kAuto) return tuning;
  if (variant == kEagerVariant) {
    tuning.eager = true;
    return tuning;
  }
  std::string_view rest = variant;
  const bool has_conv = TakeRank(kConv, &rest, &tuning.conv);
  if (has_conv && rest.empty()) return tuning;
  const bool joins = !has_conv || rest.front() == '+';
  if (has_conv && joins) rest.remove_prefix(1);
  if (!joins || !TakeRank(kRows, &rest, &tuning.rows) || !rest.empty()) {
    return UnknownVariant(variant);
  }
  return tuning;
}

std::vector<Tuning> Alternatives(const CanonicalPlan& plan,
                                 const Target& target, size_t limit) {
  std::vector<Tuning> alternatives = {Tuning{}};
  if (target.is_cpu()) return alternatives;
  int conv = 0;
  int rows = 0;
  const std::vector<Schedule> schedules = MakeSchedules(plan, target);
  for (const Kernel& kernel : schedules.front().kernels) {
    if (kernel.conv && !kernel.packs) {
      const ConvOptions options = {plan.plan.grade, target, 0, nullptr};
      conv = std::max(conv, CountFitting(ConvCandidates(kernel, options)));
    }
    if (kernel.row_work) {
      rows = std::max(rows, CountFitting(RowCandidates(kernel, target)));
    }
  }
  conv = std::min(conv, kTriedLayouts);
  for (int rank = 1; rank < std::max(conv, rows); ++rank) {
    if (rank < conv) alternatives.push_back({rank, 0});
    if (rank < rows) alternatives.push_back({0, rank});
  }
  if (alternatives.size() > limit) alternatives.resize(limit);
  return alternatives;
}

}  // namespace kiln
