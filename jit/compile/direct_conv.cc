#include "jit/compile/direct_conv.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "jit/compile/head_tile.h"
#include "jit/compile/linear_tile.h"
#include "jit/compile/narrow_conv.h"
#include "jit/compile/narrow_windows.h"
#include "jit/compile/stem_tile.h"

namespace kiln {
namespace {

std::optional<DirectTile> TileOf(const LoweredPlan& plan, const Node& node,
                                 Grade grade, const Target& target, int linear,
                                 int spare_registers) {
  if (node.kind != NodeKind::kConv2d) return std::nullopt;
  const std::vector<LinearWay> ways =
      LinearWays(plan, node, grade, target, spare_registers);
  if (!ways.empty()) {
    const auto rank = std::min(static_cast<size_t>(linear), ways.size() - 1);
    return ways[rank].tile;
  }
  if (const auto tile = NarrowConvTile(plan, node, target)) return tile;
  if (const auto tile = HeadTileOf(plan, node, target)) return tile;
  if (const auto tile = NarrowWindowTile(plan, node, grade, target)) {
    return tile;
  }
  return StemTileOf(plan, node, grade, target);
}

}  // namespace

LoweredPlan DirectConvolutions(LoweredPlan plan, Grade grade,
                               const Target& target, int linear,
                               int spare_registers) {
  std::vector<std::optional<DirectTile>> tiles;
  for (const Node& node : plan.nodes) {
    tiles.push_back(TileOf(plan, node, grade, target, linear, spare_registers));
  }
  for (size_t i = 0; i < tiles.size(); ++i) plan.nodes[i].direct = tiles[i];
  return plan;
}

}  // namespace kiln
