#include "jit/compile/reduce_geometry.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <vector>

#include "jit/compile/rounding.h"

namespace kiln {
namespace {

constexpr int kAccessBytes = 16;
// Outputs of a thread, each of which has a state.
constexpr int kMaxColumns = 4;
// Fewer steps for each thread than this are not worth a second kernel.
constexpr int64_t kMinStepsPerSplitThread = 16;
constexpr int64_t kMaxSplits = 1024;
// Of a small tensor fewer blocks for an output do not make up for the second
// kernel's launch.
constexpr int64_t kFewElements = int64_t{1} << 20;
constexpr int64_t kFewestSplits = 4;
constexpr int kMaxLanesOfRow = 512;
// Eight threads side by side still read whole lines of 128 bytes, sixteen if
// elements have 16 bits. Of few columns so many share one that they read whole
// sectors, where the tensors are so small that caches serve the rest of a line.
constexpr int kMaxLanesOfColumn = 32;
constexpr int kMaxLanesOfHalfColumn = 16;
constexpr int kSectorBytes = 32;
constexpr int64_t kSmallBytes = int64_t{8} << 20;
// Where there are so many columns: as many lanes, up to this limit, as leave a
// thread accesses to have in flight, and fill this share of the device's
// threads, more where these have single elements. Behind long prologues single
// elements have so many.
constexpr int64_t kManyColumns = 8192;
constexpr int kMaxLanesOfMany = 16;
constexpr double kShareOfMany = 0.4;
constexpr double kShareOfNarrow = 0.8;
constexpr int kLanesOfNarrow = 4;
// Steps of a lane that are worth a second kernel there.
constexpr int64_t kStepsToSplit = 64;
// Lanes of a row at least: side by side they read whole lines of 128 bytes.
// Fewer of rows that would leave them with less than so many accesses, of one
// element, of two or of more: what follows these takes as long for few.
constexpr int kMinLanesOfRow = 8;
constexpr int64_t kFewestSingles = 6;
constexpr int64_t kFewestPairs = 5;
constexpr int64_t kFewestVectors = 3;
// Rows have so many lanes, up to this limit, that none loads twice: what it
// waits for, and then merging, is done once. The fewer lanes, the less there
// is to merge.
constexpr int kMaxLanesOfManyRows = 256;
// Values in flight that leave registers for as many threads as hide the
// latency of memory, and accesses, which code is written for.
constexpr int kValuesInFlight = 32;
constexpr int kMaxAtOnce = 8;
// Threads of a multiprocessor that have registers for all of them, behind a
// prologue of so many operations.
constexpr int64_t kMaxPrologueInFlight = 2;
constexpr int kThreadsInFlight = 1024;
// Accesses in flight where a thread loads more than once, and of columns, but
// not where threads are few or an access is one element of 16 bits.
constexpr int kAtOnceOfMany = 4;
// Longer prologues hide the latency of loads by themselves.
constexpr int64_t kMaxPrologueForAll = 3;
constexpr int64_t kMaxPrologueForTwo = 8;
// Threads on a multiprocessor that keep enough loads in flight, and bytes.
constexpr int64_t kThreadsPerSm = 2048;
// Columns of which all lanes are less than one in so many of those threads.
constexpr int64_t kFewShare = 4;
constexpr int64_t kBytesInFlight = 64 * 1024;
// Of these, as many are enough; else blocks are split, into so many waves.
constexpr double kFilled = 0.85;
constexpr int64_t kMaxWaves = 2;
constexpr double kFilledByWhole = 0.9;  // by splits that have whole accesses

std::vector<bool> ReducedAxes(const Node& node, size_t rank) {
  std::vector<bool> reduced(rank, false);
  if (const auto* softmax = std::get_if<SoftmaxAttributes>(&node.attributes)) {
    if (rank > 0) reduced[softmax->dim] = true;
    return reduced;
  }
  const auto& reduce = std::get<ReduceAttributes>(node.attributes);
  if (reduce.dim.empty()) reduced.assign(rank, true);
  for (const int64_t dim : reduce.dim) {
    if (static_cast<size_t>(dim) < rank) reduced[dim] = true;
  }
  return reduced;
}

}  // namespace

ReduceView ViewOf(const Node& node, const Dims& dims) {
  ReduceView view;
  if (node.op == OpKind::kGroupNorm) {
    const auto& norm = std::get<GroupNormAttributes>(node.attributes);
    view.kept0 = dims[0] * norm.num_groups;
    view.reduced0 = NumElements(dims) / view.kept0;
    return view;
  }
  int64_t* const extents[] = {&view.kept0, &view.reduced0, &view.kept1,
                              &view.reduced1, &view.kept2};
  const std::vector<bool> reduced = ReducedAxes(node, dims.size());
  size_t place = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    const bool at_reduced = place % 2 == 1;
    if (reduced[i] != at_reduced) ++place;
    *extents[place] *= dims[i];
  }
  return view;
}

ReduceWork ReduceWorkOf(const LoweredPlan& plan, const KernelGroup& group) {
  ReduceWork work;
  work.prologue = static_cast<int64_t>(group.prologue.size());
  const std::set<int> read = WholeValuesReduced(plan, group);
  work.operands = static_cast<int>(read.size());
  work.reads_more = ValuesRead(plan, UpToAnchor(group)).size() > read.size();
  work.bytes = read.empty() ? sizeof(float) : 0;
  for (const int value : read) {
    const DataType dtype = plan.values[value].desc.dtype;
    work.bytes = std::max(work.bytes, static_cast<int>(ElementSize(dtype)));
  }
  return work;
}

namespace {

class Chooser {
 public:
  Chooser(const ReduceView& view, const ReduceWork& work, int sm_count)
      : work_(work),
        wanted_threads_(std::max(sm_count, 1) * kThreadsPerSm),
        geometry_{view} {}

  ReduceGeometry Choose() && {
    geometry_.vector = Vector();
    if (geometry_.rows()) {
      ShareRow();
    } else {
      geometry_.lanes = LanesOfColumn();
    }
    geometry_.threads = std::max(geometry_.threads, geometry_.lanes);
    geometry_.splits = WholeSplits(Splits());
    geometry_.at_once = AtOnce();
    geometry_.min_blocks = MinBlocks();
    return geometry_;
  }

 private:
  int Vector() const {
    int vector = kAccessBytes / work_.bytes;
    if (!geometry_.rows()) vector = std::min(vector, kMaxColumns);
    while (vector >= kMaxColumns && geometry_.view.run() % vector != 0) {
      vector /= 2;
    }
    if (vector >= kMaxColumns) return vector;
    return geometry_.rows() && geometry_.view.run() % 2 == 0 ? 2 : 1;
  }

  int MostAtOnce() const {
    if (work_.prologue > kMaxPrologueForTwo) return 1;
    if (work_.prologue > kMaxPrologueForAll) return 2;
    if (!geometry_.rows()) {
      const bool is_narrow = geometry_.vector == 1 && work_.bytes == 2;
      const bool has_many =
          HasManyColumns() &&
          geometry_.vector * kMaxAtOnce * work_.operands <= kValuesInFlight;
      return is_narrow || has_many || HasFewColumns() ? kMaxAtOnce
                                                      : kAtOnceOfMany;
    }
    const int most =
        kValuesInFlight / (geometry_.vector * std::max(work_.operands, 1));
    return std::clamp(static_cast<int>(std::bit_floor(unsigned(most))), 1,
                      kMaxAtOnce);
  }

  // Whether threads are so few that registers are no matter.
  bool HasFewColumns() const {
    return geometry_.view.outputs() / geometry_.vector * kMaxLanesOfColumn *
               kFewShare <
           wanted_threads_;
  }

  bool HasManyColumns() const {
    return !geometry_.rows() && geometry_.view.outputs() >= kManyColumns &&
           !Computes();
  }
  bool Computes() const { return work_.prologue > kMaxPrologueForAll; }

  // Accesses of one output.
  int64_t Accesses() const {
    return CeilDiv(geometry_.view.steps(),
                   geometry_.rows() ? geometry_.vector : 1);
  }

  // As few lanes as load everything at once, more where that leaves
  // multiprocessors without enough threads, but more than one for each.
  void ShareRow() {
    const int64_t accesses = Accesses();
    const int at_once = std::max(MostAtOnce(), kAtOnceOfMany);
    int& lanes = geometry_.lanes;
    const int64_t fewest = geometry_.vector == 1   ? kFewestSingles
                           : geometry_.vector == 2 ? kFewestPairs
                                                   : kFewestVectors;
    lanes = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(
        std::clamp<int64_t>(CeilDiv(accesses, fewest), 1, kMinLanesOfRow))));
    while (lanes < kMaxLanesOfManyRows && lanes * at_once < accesses) {
      lanes *= 2;
    }
    while (lanes < kMaxLanesOfRow && lanes * 3 <= accesses &&
           geometry_.view.outputs() * lanes < wanted_threads_) {
      lanes *= 2;
    }
    while (lanes > 1 && lanes / 2 >= accesses) lanes /= 2;
  }

  // Where fewer threads keep enough in flight in one wave of blocks, those. Of
  // few columns behind a long prologue as many as have a step each.
  int LanesOfColumn() const {
    if (HasManyColumns()) return LanesOfMany();
    const int64_t columns = geometry_.view.outputs() / geometry_.vector;
    if (geometry_.vector == 1 && columns >= kManyColumns &&
        geometry_.view.steps() >= kLanesOfNarrow * kAtOnceOfMany) {
      return kLanesOfNarrow;
    }
    const int most = MostLanesOfColumn();
    const int fewest_steps = Computes() && HasFewColumns() ? 1 : kAtOnceOfMany;
    int lanes = 1;
    while (lanes < most && lanes * 2 * fewest_steps <= geometry_.view.steps() &&
           columns * lanes < wanted_threads_) {
      lanes *= 2;
    }
    int fewer = lanes;
    while (fewer > 1 && columns * fewer > ThreadsInFlight()) fewer /= 2;
    const double filled = static_cast<double>(columns * fewer) /
                          static_cast<double>(ThreadsInFlight());
    return filled >= kFilled && filled <= 1 ? fewer : lanes;
  }

  int LanesOfMany() const {
    int lanes = 1;
    while (lanes < kMaxLanesOfMany &&
           lanes * 2 * kMaxAtOnce <= geometry_.view.steps() &&
           HaveRoomForTwice(lanes)) {
      lanes *= 2;
    }
    return lanes;
  }
  // Whether many columns of so many lanes fill less than half of their share.
  bool HaveRoomForTwice(int64_t lanes) const {
    const double most = static_cast<double>(wanted_threads_) *
                        (geometry_.vector == 1 ? kShareOfNarrow : kShareOfMany);
    const int64_t columns = geometry_.view.outputs() / geometry_.vector;
    return static_cast<double>(columns * lanes * 2) <= most;
  }

  int MostLanesOfColumn() const {
    const ReduceView& view = geometry_.view;
    const int64_t bytes = view.outputs() * view.steps() * work_.bytes *
                          std::max(work_.operands, 1);
    if (HasFewColumns() && bytes <= kSmallBytes) {
      return geometry_.threads * geometry_.vector * work_.bytes / kSectorBytes;
    }
    return work_.bytes == 2 ? kMaxLanesOfHalfColumn : kMaxLanesOfColumn;
  }

  // Threads of the device that keep enough in flight, where each loads several
  // times: fewer if each has much.
  int64_t ThreadsInFlight() const {
    const int64_t bytes = int64_t{MostAtOnce()} * geometry_.vector *
                          work_.bytes * std::max(work_.operands, 1);
    const int64_t per_sm = std::clamp(kBytesInFlight / bytes,
                                      int64_t{kThreadsInFlight}, kThreadsPerSm);
    return wanted_threads_ / kThreadsPerSm * per_sm;
  }

  // Of the slots of blocks, what is taken in the mean until the last has ended.
  static double FilledBy(int64_t blocks, int64_t slots) {
    return static_cast<double>(blocks) /
           static_cast<double>(CeilDiv(blocks, slots) * slots);
  }

  // As many as fill the device once; else those that leave the least of it
  // idle.
  int Splits() const {
    const bool are_long =
        geometry_.view.steps() >= kStepsToSplit * geometry_.lanes;
    if (HasManyColumns() && !(are_long && HaveRoomForTwice(geometry_.lanes))) {
      return 1;
    }
    const int64_t slots =
        std::max<int64_t>(ThreadsInFlight() / geometry_.threads, 1);
    const int64_t blocks = geometry_.blocks();
    const int64_t for_steps =
        geometry_.view.steps() / (geometry_.lanes * kMinStepsPerSplitThread);
    const int64_t elements = geometry_.view.outputs() * geometry_.view.steps();
    if (elements < kFewElements && for_steps < kFewestSplits) return 1;
    const int64_t most =
        std::min({CeilDiv(kMaxWaves * slots, blocks), for_steps, kMaxSplits});
    int64_t best =
        std::clamp<int64_t>(slots / blocks, 1, std::max<int64_t>(most, 1));
    const bool is_filled = FilledBy(blocks * best, slots) >= kFilled;
    for (int64_t splits = 1; splits <= most && !is_filled; ++splits) {
      if (FilledBy(blocks * splits, slots) > FilledBy(blocks * best, slots)) {
        best = splits;
      }
    }
    return static_cast<int>(best);
  }

  // Of rows rather some less, if each is as many whole accesses of all threads:
  // then nothing is asked of one.
  int WholeSplits(int most) const {
    if (!geometry_.rows()) return most;
    const int64_t all =
        int64_t{geometry_.lanes} * geometry_.vector * MostAtOnce();
    const int fewest = static_cast<int>(std::ceil(kFilledByWhole * most));
    for (int splits = most; splits >= fewest; --splits) {
      if (geometry_.view.steps() % (splits * all) == 0) return splits;
    }
    return most;
  }

  // All of a thread's accesses, if it has not too many: of rows a power of two,
  // of which the mean of equal values is exact.
  int AtOnce() const {
    const int64_t sharing = int64_t{geometry_.lanes} * geometry_.splits;
    const int most = MostAtOnce();
    const int64_t accesses = CeilDiv(Accesses(), sharing);
    if (geometry_.rows() && accesses <= most) {
      return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(accesses)));
    }
    if (!geometry_.rows() && most >= kAtOnceOfMany && accesses <= kMaxAtOnce &&
        accesses * geometry_.vector * work_.operands <= kValuesInFlight) {
      return static_cast<int>(accesses);
    }
    if (!geometry_.rows() && accesses >= most) return most;
    if (most >= kAtOnceOfMany && accesses >= kAtOnceOfMany) {
      return kAtOnceOfMany;
    }
    return most >= 2 && accesses >= 2 ? 2 : 1;
  }

  // The compiler would rather load less at once than leave out a thread. What
  // else is held or computed may need more registers than that leaves.
  int MinBlocks() const {
    return geometry_.rows() && work_.prologue <= kMaxPrologueInFlight &&
                   !work_.reads_more
               ? kThreadsInFlight / geometry_.threads
               : 0;
  }

  const ReduceWork& work_;
  int64_t wanted_threads_;
  ReduceGeometry geometry_;
};

}  // namespace

ReduceGeometry ChooseReduceGeometry(const ReduceView& view,
                                    const ReduceWork& work, int sm_count) {
  return Chooser(view, work, sm_count).Choose();
}

}  // namespace kiln
