#include "jit/compile/direct_conv.h"

#include <optional>
#include <vector>

#include "jit/compile/dense_tile.h"
#include "jit/compile/head_tile.h"
#include "jit/compile/narrow_conv.h"
#include "jit/compile/narrow_windows.h"
#include "jit/compile/stem_tile.h"

namespace kiln {
namespace {

std::optional<DirectTile> TileOf(const LoweredPlan& plan, const Node& node,
                                 Grade grade, const Target& target) {
  if (node.kind != NodeKind::kConv2d) return std::nullopt;
  if (const auto tile = DenseTileOf(plan, node, target)) return tile;
  if (const auto tile = NarrowConvTile(plan, node, target)) return tile;
  if (const auto tile = HeadTileOf(plan, node, target)) return tile;
  if (const auto tile = NarrowWindowTile(plan, node, grade, target)) {
    return tile;
  }
  return StemTileOf(plan, node, grade, target);
}

}  // namespace

LoweredPlan DirectConvolutions(LoweredPlan plan, Grade grade,
                               const Target& target) {
  std::vector<std::optional<DirectTile>> tiles;
  for (const Node& node : plan.nodes) {
    tiles.push_back(TileOf(plan, node, grade, target));
  }
  for (size_t i = 0; i < tiles.size(); ++i) plan.nodes[i].direct = tiles[i];
  return plan;
}

}  // namespace kiln
