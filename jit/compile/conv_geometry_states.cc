// Of ConvGeometry: states of normalised groups that blocks have channels of
// (conv_block_states.cuh), and what they take of shared memory.
#include <algorithm>

#include "jit/compile/conv_geometry.h"

namespace kiln {

int64_t ConvGeometry::Splits(int64_t group_channels) const {
  return blocks_of_channels() * PartsOfState(group_channels);
}
int64_t ConvGeometry::PartsOfState(int64_t group_channels) const {
  int64_t most = 0;
  for (int64_t first = 0; first < problem.output[1]; first += group_channels) {
    const int64_t last = first + group_channels - 1;
    const int64_t parts = last / block_channels() - first / block_channels();
    most = std::max(most, parts + 1);
  }
  return most;
}
int64_t ConvGeometry::StatesOfBlock(int64_t group_channels) const {
  const int64_t channels = block_channels();
  if (channels % group_channels == 0) return channels / group_channels;
  if (group_channels % channels == 0) return 1;
  const int64_t most = (channels + group_channels - 2) / group_channels + 1;
  return std::min(most, problem.output[1] / group_channels);
}

int64_t ConvGeometry::state_bytes() const {
  return groups_n * block_channels() * 24;
}
int64_t ConvGeometry::HeldBytes(int64_t channel_bytes,
                                int64_t group_channels) const {
  constexpr int64_t kStateBytes = 12;
  return 2 * plane_bytes() + int64_t{groups()} * 64 * channel_bytes +
         2 * StatesOfBlock(group_channels) * kStateBytes;
}

}  // namespace kiln
