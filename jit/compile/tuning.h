#ifndef KILN_JIT_COMPILE_TUNING_H_
#define KILN_JIT_COMPILE_TUNING_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/artifact/target.h"
#include "jit/plan/canonical.h"

namespace kiln {

// Which images a schedule moves so that a convolution has one of them all
// (join_images.h, mosaic_images.h).
enum class ImageUse : uint8_t {
  kWherePredicted,  // to pay
  kWherever,        // they can be moved
  kNowhere,
};

// Which candidates a schedule takes, as ranks in the order of predicted times:
// 0 is the models' choice. Beyond the last candidate means the last. A value.
struct Tuning {
  int conv = 0;          // among the layouts of warps of each convolution
  int rows = 0;          // among the keepers of each norm and softmax over rows
  int images = 0;        // an ImageUse
  int correlations = 0;  // 1: statistics come from these wherever they can
                         // (correlation.h), not only where that is predicted
                         // to be faster
  int linear = 0;        // among the ways to do each linear layer on Hopper,
                         // linear_tile.h
  bool eager = false;    // no kernels of the plan's own: eager_plan.h
  ImageUse image_use() const { return static_cast<ImageUse>(images); }
  friend bool operator==(const Tuning&, const Tuning&) = default;
};

inline constexpr int kMaxTuningRank = 15;  // of conv, rows and linear
inline constexpr std::string_view kEagerVariant = "eager";

// CompileRequest::variant: "auto" for the models' choice, else "conv1",
// "rows2", "images1", "correlations1", "linear1", several in this order with
// "+" between them, or "eager". ParseTuning(ToString(t)) equals t.
std::string ToString(const Tuning& tuning);

// Errors: INVALID_ARGUMENT for any other text.
absl::StatusOr<Tuning> ParseTuning(std::string_view variant);

// What is worth measuring of a plan: the models' choice, then each further
// layout of its convolutions, tile of its linear layers and keeper of its rows,
// images that are moved where the models leave them and the other way, and
// correlations, `limit` of them at most. The cpu target has the first only.
std::vector<Tuning> Alternatives(const CanonicalPlan& plan,
                                 const Target& target, size_t limit);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_TUNING_H_
