#ifndef KILN_JIT_COMPILE_SCHEDULE_H_
#define KILN_JIT_COMPILE_SCHEDULE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "jit/artifact/artifact.h"
#include "jit/compile/conv_choice.h"
#include "jit/compile/correlation.h"
#include "jit/compile/depthwise_tile.h"
#include "jit/compile/fusion.h"
#include "jit/compile/lowered_plan.h"
#include "jit/compile/reduce_geometry.h"
#include "jit/compile/row_geometry.h"
#include "jit/compile/tuning.h"

namespace kiln {

// Where a tensor lies while a plan runs.
struct Place {
  int slot = -1;             // of the artifact; -1: in `area`
  int64_t offset_bytes = 0;  // in `area`
  DataType dtype = DataType::kF32;
  Area area = Area::kWorkspace;
  friend bool operator==(const Place&, const Place&) = default;
};

struct Store {
  int value = 0;
  Place place;
};

// What bound_results.cu leaves: six numbers.
inline constexpr int64_t kBoundBytes = 24;

// What a kernel is there for: to compute nodes, or for one that does, the
// convolution of its group: to pack its weights, to lay its input down, to find
// how large its results can be, or to split the rows of an operand.
enum class KernelRole : uint8_t { kComputes, kPacks, kLays, kBounds, kSplits };

// One kernel: what it computes and what it leaves in memory.
struct Kernel {
  KernelRole role = KernelRole::kComputes;
  KernelGroup group;
  std::vector<Store> stores;
  // For a kReduce anchor only. `partials` is where split reductions leave
  // their states.
  std::optional<ReduceGeometry> reduce;
  std::optional<Place> partials;
  // For a depthwise convolution whose filter has rows to be unrolled.
  std::optional<DepthwiseTile> depthwise;
  // For kernels that keep rows on chip; `partials` is then where the members
  // of a team leave their statistics.
  std::optional<RowGeometry> rows;
  // For a statistic over rows, kept on chip or not: what was weighed.
  std::optional<RowWork> row_work;
  // For a convolution on tensor cores. `packed` is where its weights lie in
  // the order of pack_weights.cu, if it reads them so.
  std::optional<ConvGeometry> conv;
  ConvDemands demands;  // that `conv` meets
  std::optional<Place> packed;
  // For one that takes lines that are laid down (ConvGeometry::lays_lines):
  // where they lie. For one whose results are laid down in its own kernel
  // (lay_results.h): where these lie, and how large they can be.
  std::optional<Place> laid;
  std::optional<Place> laid_results;
  std::optional<Place> bounds;
  // For a linear layer that reads parts of its operands' numbers
  // (split_rows.h), input and weights, and for the kernels that leave them:
  // where these lie, and the operand that such a kernel is there for.
  std::array<std::optional<Place>, 2> split;
  int operand = 0;
  // For a linear layer: a value that it leaves so, and in no other form.
  std::optional<int> split_result;
  // For a group with nodes in `finish`: where blocks are counted, and for how
  // many blocks earlier each applies those nodes.
  std::optional<Place> progress;
  int64_t lag = 0;
  // For a tail that gathers statistics: kernels that need them merge the states
  // in `partials` themselves (conv_states.h), and nothing else is left of them.
  bool leaves_states = false;
  // For such a tail of which nothing but states is left: these come from
  // correlations of the convolution's input, which is not computed; `partials`
  // has the correlations behind them.
  std::optional<Correlation> correlation;
  // Goes through its tensors from the end, for the kernel before has gone
  // through one of them from the beginning, and the L2 cache has its end.
  bool backwards = false;
  // Its launches may begin before those before them have ended, whose memory
  // they wait for themselves (launch_overlap.h).
  bool overlaps = false;
  // Brings its input and packed weights before it waits: the kernel before
  // makes neither.
  bool fetches_early = false;
  // Runs only when a parameter has changed: reads parameters, fills the
  // prepared area.
  bool prepares = false;

  // Whether nodes are computed, not only what other kernels need for that.
  bool computes() const { return role == KernelRole::kComputes; }
  bool packs() const { return role == KernelRole::kPacks; }
  bool lays() const { return role == KernelRole::kLays; }
  bool bounds_results() const { return role == KernelRole::kBounds; }
  bool splits() const { return role == KernelRole::kSplits; }
  bool ReadsPacked() const { return conv && computes() && !correlation; }
  bool TakesLaidLines() const { return ReadsPacked() && conv->lays_lines; }
  bool LaysResults() const { return ReadsPacked() && conv->result_parts > 0; }
};

// A plan cut into kernels, in launch order.
struct Schedule {
  LoweredPlan lowered;
  std::vector<Kernel> kernels;
  // Where kernels read a value: its slot, the place of its copy, or an
  // output that is lent to it (lent_output.h). Empty for values that exist only
  // inside one kernel.
  std::vector<std::optional<Place>> homes;
  int64_t workspace_bytes = 0;
  int64_t prepared_bytes = 0;
  std::vector<ZeroRange> zero;
  Requirements requires_;  // of the device, for the whole schedule
  // A pooling stays behind a norm, where it takes less time (pooling_order.h).
  bool pools_behind = false;

  // Kernels whose statistics come from correlations.
  int64_t CountCorrelations() const;
  bool HoldsImages() const;  // in blocks of any kernel
  // Of the models' choice: ranks of Tuning::conv, 0 among them, before that of
  // the fastest tiles alone. Where it has correlations the next ones have none,
  // and where it holds images those behind them do not.
  int RanksBeforeTiles() const;
};

// Registers that a schedule leaves to what the plan computes on each element.
enum class Room : uint8_t {
  kTight,  // enough for most plans
  kAmple,  // fewer sums to a thread, for long chains; no rows in registers
           // through several reductions
  kVast,   // fewer still
  kWarps,  // as few, and warps multiply, not warpgroups
  // The plain schedule, which is taken in any case: one kernel for each
  // barrier, without tiles of depthwise convolutions; values between kernels
  // materialised in their types, f32 but for casts. An output that is read
  // again is read from its slot if that has this type, else from an unrounded
  // copy.
  kPlain,
};

// What an artifact carries: the fastest schedule known for the target, and
// behind it, if that asks anything of the device, one that does not: the same,
// but that teams work in turns, by the same machine code. `tuning`: the one
// with these candidates instead of those predicted to be fastest. `refused`:
// without these tiles. Neither is of account where room is kPlain.
std::vector<Schedule> MakeSchedules(const CanonicalPlan& plan,
                                    const Target& target,
                                    Room room = Room::kTight,
                                    const Tuning& tuning = {},
                                    const RefusedTiles& refused = {});

// Bytes of the state that a split reduction leaves for each output and split:
// the size of the reducer of reducers.cuh.
int64_t ReducerStateBytes(const Node& reduce);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_SCHEDULE_H_
