// What a convolution kernel does with its sums, tile by tile: Spec::kTail
// chooses. Each takes the sums through the plan's pointwise ops by
//   Spec::Element(t, at, sum, scale, inside, channel)
// where the kernel ends there, or
//   float Spec::Read(t, at, sum, scale, inside, channel)
// where something follows; in front of a LogSumExp, that times log2(e). Both
// store only where `inside`; `scale` is what the sum has yet to be multiplied
// by, `channel` is Spec::ReadChannel(t, at). A block has several images only
// before kStore, and kMoments without windows.
//
// Tails of pixel rows get `scales`, of which scales(j, i) is that of the
// channel of element i of fragment j. Those that compute all values of a pixel
// first (ChannelValues), or reduce over channels from registers
// (conv_channel_runs.cuh), also get `pass_turn`. Where Spec::kTurnHeldFor is
// not 0 they call it once for a tile, when they have the values of so many
// fragments.
#ifndef KILN_KERNEL_SOURCES_CONV_TAIL_CUH_
#define KILN_KERNEL_SOURCES_CONV_TAIL_CUH_

#include "conv_channels.cuh"
#include "conv_warp.cuh"
#include "store_if.cuh"

namespace kiln {

enum class Tail {
  kStore,     // ends with pointwise ops
  kMoments,   // count, mean and squared differences of each normalised group
  kChannels,  // a reduction over all channels of a pixel
  kSoftmax,   // softmax over them, and pointwise ops
  kImages,    // a reduction over all pixels of a channel
  kPool,      // pooled windows
};

template <typename Spec, Tail kTail = Spec::kTail>
struct ConvTail;

// Scales of sums that have none but Spec::kSumFactor, which all have.
template <typename Spec>
struct Unscaled {
  __device__ float operator()(int, int) const { return Spec::kSumFactor; }
};

// Where others may multiply already.
struct TurnPassed {
  __device__ void operator()() const {}
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_CONV_TAIL_CUH_
