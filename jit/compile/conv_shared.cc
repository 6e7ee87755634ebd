#include "jit/compile/conv_shared.h"

#include <algorithm>

#include "jit/compile/channel_text.h"
#include "jit/compile/compute_capability.h"

namespace kiln {
namespace {

constexpr int64_t kSharedPerBlockReserved = 1024;
constexpr int64_t kMostShared = 228 * 1024;

// Of shared memory, at most; the largest of what conv_tails.cuh may ask for.
// `pool` is more than tails without windows need: the choices that have been
// timed were made with it.
int64_t TailBytes(const ConvGeometry& g, const ConvDemands& demands) {
  const int64_t of_channels =
      g.has_groups() ? g.images * g.block_channels() * kMaxChannelBytes : 0;
  if (g.holds_windows()) {
    return g.state_bytes() + of_channels +
           g.HeldWindowBytes(demands.held_channel_bytes);
  }
  if (demands.holds_images) {
    return g.state_bytes() + of_channels +
           g.HeldBytes(demands.held_channel_bytes, demands.group_channels);
  }
  if (g.reduces_runs(demands)) return g.channel_run_bytes() + of_channels;
  // Windows that are kept on their way to memory take no more than planes.
  if (g.channel_rows) return g.plane_bytes() + g.state_bytes() + of_channels;
  const int64_t staged = g.StagedWords(demands) * 4;
  if (demands.has_softmax) return staged + g.softmax_words() * 4 + of_channels;
  const int64_t warps_m = g.row_warps();
  const int64_t warps_n = g.block_channels() / (8 * g.tiles_n);
  const int64_t moments = warps_m * g.block_channels() * 12;
  const int64_t pixels = int64_t{g.tile_h} * g.tile_w;
  const int64_t pool = warps_n * 8 * (pixels + 3 * g.tile_h + 32) * 4;
  const int64_t channels = 2 * (warps_n - 1) * pixels * 12;
  const int64_t windows = g.WindowWords() * 4;
  return std::max({moments + staged, pool, channels, windows}) + of_channels;
}

}  // namespace

int64_t SharedBytes(const ConvGeometry& g, const ConvDemands& demands) {
  if (g.holds_images()) return g.shared_bytes() + TailBytes(g, demands);
  return g.resident_blocks *
         (g.shared_bytes() + TailBytes(g, demands) + kSharedPerBlockReserved);
}

bool LeavesLittleL1(const ConvGeometry& g, const ConvDemands& demands) {
  const int64_t reserved = g.holds_images() ? kSharedPerBlockReserved : 0;
  return LeavesLittleL1(SharedBytes(g, demands) + reserved);
}

bool LeavesLittleL1(int64_t shared_bytes) {
  return ShareOfShared(shared_bytes) >= kMostShared;
}

}  // namespace kiln
