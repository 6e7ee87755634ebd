#include "jit/compile/dense_tile.h"

#include <algorithm>
#include <utility>

#include "jit/compile/direct_cost.h"
#include "jit/compile/reshape_images.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kThreads = 256;
constexpr int64_t kAccessBytes = 16;
// More of them are worth turning pixels around for tensor cores.
constexpr int64_t kMostImages = 64;
// Of a multiprocessor: products that threads have done when tensor cores have
// begun. Of so few images weights take longer than any number of products.
constexpr int64_t kMostProducts = int64_t{1} << 19;
constexpr int64_t kVeryFewImages = 4;
// Warps that a multiprocessor should have, and accesses behind each other of a
// lane that has fewer beside it.
constexpr int64_t kEnoughWarps = 4;
constexpr int64_t kMostAccesses = 24;
// Of a multiprocessor, that leave a thread enough registers for its sums.
constexpr int kBlocksAtOnce = 2;
// Products of a lane's sum: more of them add up errors.
constexpr int64_t kMostOfSum = 1024;

struct DenseWork {
  int64_t images;
  int64_t results;
  int64_t inputs;  // of a result
  int64_t element_bytes;
};

std::optional<DenseWork> WorkOf(const LoweredPlan& plan, const Node& node) {
  if (!IsLinearLayer(plan, node)) return std::nullopt;
  const TensorDesc& input = plan.values[ValueOf(node.operands[0])].desc;
  const TensorDesc& filter = plan.values[ValueOf(node.operands[1])].desc;
  return DenseWork{
      input.dims[0], filter.dims[0],
      input.dims[1] * input.dims[2] * input.dims[3],
      std::max(ElementSize(input.dtype), ElementSize(filter.dtype))};
}

int64_t Vector(const DenseWork& work) {
  int64_t vector = kAccessBytes / work.element_bytes;
  while (work.inputs % vector != 0) vector /= 2;
  return vector;
}

// That share the inputs of a result: as many as have an access each.
int64_t Lanes(const DenseWork& work, int64_t vector) {
  int64_t lanes = kWarp;
  while (lanes > 4 && lanes / 2 * vector >= work.inputs) lanes /= 2;
  return lanes;
}

int64_t Warps(const DenseWork& work, const DenseTile& tile) {
  return CeilDiv(CeilDiv(work.images, int64_t{tile.images}) *
                     CeilDiv(work.results, int64_t{tile.results}),
                 kWarp / tile.lanes);
}

// Images and results of lanes, whose sums they divide: the most that leave
// enough warps.
void Divide(const DenseWork& work, int64_t sm_count, DenseTile* tile) {
  for (const auto& [images, results] :
       {std::pair(8, 4), {4, 4}, {4, 2}, {2, 2}, {1, 4}, {2, 1}, {1, 2}}) {
    if (images > work.images || images * results > tile->lanes) continue;
    tile->images = images;
    tile->results = results;
    if (Warps(work, *tile) >= kEnoughWarps * sm_count) return;
  }
  tile->images = tile->results = 1;
}

}  // namespace

std::optional<DirectTile> DenseTileOf(const LoweredPlan& plan, const Node& conv,
                                      const Target& target) {
  const std::optional<DenseWork> work = WorkOf(plan, conv);
  if (!work || work->images > kMostImages) return std::nullopt;
  const int64_t sm_count = MultiprocessorsOf(target);
  const int64_t products = work->images * work->results * work->inputs;
  if (work->images > kVeryFewImages && products > kMostProducts * sm_count) {
    return std::nullopt;
  }
  DenseTile part;
  const int64_t vector = Vector(*work);
  part.lanes = static_cast<int>(Lanes(*work, vector));
  Divide(*work, sm_count, &part);
  const int64_t accesses = CeilDiv(work->inputs, vector * part.lanes);
  const int64_t warps = Warps(*work, part);
  if (accesses * vector > kMostOfSum) return std::nullopt;
  if (accesses > kMostAccesses && warps < kEnoughWarps * sm_count) {
    return std::nullopt;
  }
  DirectTile tile;
  tile.threads = static_cast<int>(kThreads);
  tile.vector = static_cast<int>(vector);
  tile.blocks = CeilDiv(warps * kWarp, kThreads);
  tile.min_blocks = kBlocksAtOnce;
  tile.part = part;
  return tile;
}

}  // namespace kiln
