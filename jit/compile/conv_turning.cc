// Of ConvGeometry: how warps share the lines that they turn
// (kernel_sources/conv_turned_lines.cuh).
#include <algorithm>
#include <limits>

#include "jit/compile/conv_geometry.h"
#include "jit/compile/rounding.h"

namespace kiln {
namespace {

// Of matrices, that a warp has at once: it has where they lie in registers.
constexpr int64_t kMostEightsAtOnce = 3;

int64_t RemainderOfEight(int64_t column) { return (column % 8 + 8) % 8; }

}  // namespace

TurningShare ConvGeometry::turning() const {
  TurningShare share;
  if (!turns_lines) return share;
  // Where all patches begin at the same place of eight columns, it is known.
  const bool begin_alike =
      step(1) * problem.stride[1] % 8 == 0 && phases(1) == 1;
  const int64_t before = begin_alike ? RemainderOfEight(-padding(1)) : 7;
  const int64_t columns = (pitch - 1) * problem.stride[1] + planes(1);
  share.across = CeilDiv(before + columns, 8);
  const int64_t rows = images * planes(0) * plane_height();
  const int64_t eights = CeilDiv(rows * share.across, 8);
  const int64_t warps = producers * 4;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const int64_t sets : {1, 2, 4}) {
    const int64_t of_warp = CeilDiv(eights, warps / sets);
    const int64_t batches = CeilDiv(of_warp, kMostEightsAtOnce);
    const int64_t at_once = CeilDiv(of_warp, batches);
    const int64_t turns = batches * CeilDiv(chunk / 8, sets);
    const int64_t found = batches > 1 ? batches * at_once : 0;
    const int64_t work = turns * (1 + at_once) + found;
    if (work >= least) continue;
    least = work;
    share.sets = sets;
    share.batches = batches;
    share.at_once = at_once;
  }
  share.ahead = std::max(2, static_cast<int>(4 / share.at_once));
  return share;
}

int64_t ConvGeometry::place_units() const {
  constexpr int64_t kUnits = 64;  // eight matrices of eight rows
  if (!turns_lines) return 0;
  const TurningShare share = turning();
  return producers * 4 * share.ahead * share.at_once * kUnits;
}

}  // namespace kiln
