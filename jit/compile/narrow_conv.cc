#include "jit/compile/narrow_conv.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "jit/compile/direct_cost.h"
#include "jit/compile/reshape_images.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// Beyond so many results tensor cores are faster, and more than a few need the
// widest accesses, for weights are read once for each (docs/kernel-notes).
constexpr int64_t kMostOfF32 = 12;
constexpr int64_t kMostOf16Bits = 4;
constexpr int64_t kFewResults = 8;
constexpr int64_t kVeryFewResults = 4;
// Of so few channels tensor cores would mostly multiply zeros.
constexpr int64_t kFewChannels = 4;
// Of an image: fewer are a linear layer, or lie too far apart.
constexpr int64_t kFewestPixels = 32;

constexpr int64_t kWarp = 32;
constexpr int64_t kThreads = 256;
constexpr int64_t kThreadsOfMany = 128;  // which have many sums each
// Of a multiprocessor: with fewer a thread has registers for more channels.
constexpr int kBlocksAtOnce = 4;
constexpr int kFewBlocksAtOnce = 3;
// Of a multiprocessor that has enough of the input on its way.
constexpr int64_t kEnoughThreads = 512;
constexpr int64_t kEnoughOfMany = 256;
// Channels of a sum: more of them add up errors.
constexpr int64_t kMostOfSum = 256;
constexpr int64_t kAtOnce = 8;
constexpr int64_t kFewerAtOnce = 4;
// So many blocks of a multiprocessor, and the L1, have as much.
constexpr int64_t kMostSharedBytes = 40 * 1024;
// Of the memory's time, what loads of chunks behind each other may take.
constexpr double kPartOfMemory = 0.75;

struct NarrowWork {
  int64_t images;
  int64_t pixels;
  int64_t channels;
  int64_t results;
  bool has_words;  // of 32 bits

  bool HasMany() const { return results > kFewResults; }
};

int64_t MostResults(const NarrowWork& work) {
  if (work.has_words) return kMostOfF32;
  return work.channels <= kFewChannels ? kFewResults : kMostOf16Bits;
}

int64_t Vector(const NarrowWork& work) {
  int64_t vector = 4;
  if (work.has_words && !work.HasMany()) vector = 2;
  if (!work.has_words && work.results > kMostOf16Bits) vector = 2;
  while (work.pixels % vector != 0) vector /= 2;
  return vector;
}

// Without a rest if possible.
int64_t ChannelsAtOnce(const NarrowWork& work, int64_t most) {
  most = std::min(most, work.channels);
  for (int64_t count = most; count > most / 2; --count) {
    if (work.channels % count == 0) return count;
  }
  return most;
}

// Whether results may go through memory before they are reduced. Of 16-bit
// numbers tensor cores' kernels, which reduce them on chip, are faster.
bool MayBeReducedLater(const NarrowWork& work) {
  return work.has_words && AreSmallBeside(work.results, work.channels);
}

// Whether a slice would wait for its chunks longer than the memory is busy.
bool WaitsForChunks(const NarrowWork& work, int64_t chunks, int64_t sm_count) {
  const int64_t bytes =
      work.images * work.pixels * work.channels * (work.has_words ? 4 : 2);
  return TakeTooManyTurns(chunks, bytes, sm_count, kPartOfMemory);
}

int64_t Slices(const NarrowWork& work, int64_t threads, int64_t vectors,
               int64_t chunks, int64_t sm_count) {
  const int64_t enough =
      sm_count * (work.HasMany() ? kEnoughOfMany : kEnoughThreads);
  const auto are_enough = [&](int64_t slices) {
    return vectors * slices >= enough && work.channels <= slices * kMostOfSum &&
           !WaitsForChunks(work, CeilDiv(chunks, slices), sm_count);
  };
  int64_t slices = 1;
  while (!are_enough(slices) && threads / slices > kWarp &&
         2 * slices <= chunks) {
    slices *= 2;
  }
  return slices;
}

std::optional<DirectTile> TileOf(const NarrowWork& work, const Target& target) {
  const int64_t threads = work.HasMany() ? kThreadsOfMany : kThreads;
  const int64_t vector = Vector(work);
  if (work.HasMany() && vector < 4) return std::nullopt;
  const int64_t vectors = work.images * (work.pixels / vector);
  const int64_t sm_count = MultiprocessorsOf(target);

  int64_t at_once =
      ChannelsAtOnce(work, work.HasMany() ? kFewerAtOnce : kAtOnce);
  const int64_t slices =
      Slices(work, threads, vectors, work.channels / at_once, sm_count);
  const int64_t blocks = CeilDiv(vectors, threads / slices);
  if (WaitsForChunks(work, CeilDiv(work.channels / at_once, slices),
                     sm_count)) {
    return std::nullopt;
  }
  const bool are_few = !work.HasMany() && blocks <= kFewBlocksAtOnce * sm_count;
  if (!are_few && work.results > kVeryFewResults) {
    at_once = ChannelsAtOnce(work, kFewerAtOnce);
  }
  const int64_t bytes = 4 * std::max(work.channels * RoundUp(work.results, 4),
                                     work.results * threads * vector);
  if (bytes > kMostSharedBytes) return std::nullopt;
  DirectTile tile;
  tile.threads = static_cast<int>(threads);
  tile.vector = static_cast<int>(vector);
  tile.blocks = blocks;
  tile.min_blocks = are_few ? kFewBlocksAtOnce : kBlocksAtOnce;
  tile.shared_bytes = bytes;
  tile.part = OneTapTile{static_cast<int>(at_once), static_cast<int>(slices)};
  return tile;
}

}  // namespace

std::optional<DirectTile> NarrowConvTile(const LoweredPlan& plan,
                                         const Node& conv,
                                         const Target& target) {
  if (!HasOneTap(plan, conv) ||
      std::get<ConvAttributes>(conv.attributes).groups != 1) {
    return std::nullopt;
  }
  const TensorDesc& input = plan.values[ValueOf(conv.operands[0])].desc;
  const NarrowWork work = {
      input.dims[0], input.dims[2] * input.dims[3], input.dims[1],
      plan.values[conv.results[0]].desc.dims[1], input.dtype == DataType::kF32};
  if (work.results > MostResults(work)) return std::nullopt;
  if (work.pixels < kFewestPixels) return std::nullopt;
  if (IsReducedBehind(plan, conv) && !MayBeReducedLater(work)) {
    return std::nullopt;
  }
  return TileOf(work, target);
}

}  // namespace kiln
