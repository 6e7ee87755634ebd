#include "jit/compile/row_geometry.h"

#include "jit/compile/rounding.h"

namespace kiln {

int64_t RowGeometry::blocks() const {
  if (keeper == RowKeeper::kTeam) return int64_t{team} * teams;
  if (pitch > 1) {
    const int64_t width = int64_t{threads} / lanes * vector;
    return rows / pitch * CeilDiv(pitch, width);
  }
  return CeilDiv(rows, threads / lanes) * cluster;
}

int64_t RowGeometry::TurnsOf(int64_t elements) const {
  constexpr int64_t kWarp = 32;
  const int64_t once = kWarp * (finishers / row_groups) * vector;
  const int64_t turn = elements <= once ? once : finished_at_once * once;
  return CeilDiv(elements, turn) * turn;
}

Requirements RowGeometry::requirements() const {
  Requirements requires_;
  if (keeper == RowKeeper::kTeam && resident) {
    requires_.min_sm_count = static_cast<int>(blocks());
    requires_.cooperative = true;
    requires_.shared_optin_bytes = dynamic_shared_bytes + kTeamControlBytes;
  }
  return requires_;
}

}  // namespace kiln
