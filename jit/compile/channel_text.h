#ifndef KILN_JIT_COMPILE_CHANNEL_TEXT_H_
#define KILN_JIT_COMPILE_CHANNEL_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "jit/compile/conv_geometry.h"
#include "jit/compile/element_code.h"

namespace kiln {

// Bytes of a channel that there is room for in shared memory, at most.
constexpr int64_t kMaxChannelBytes = 32;
constexpr int64_t kFieldBytes = 4;

// Members of a convolution's Spec: Channel, what the elements of a channel have
// in common by `code`, and ReadChannel, which computes it (conv_channels.cuh).
// `state`: a parameter more of ReadChannel, if not empty.
std::vector<std::string> ChannelText(const ElementCode& code,
                                     const std::string& state = "");

// Bytes of a Channel, with that many members or with those of `code`.
int64_t ChannelBytes(int64_t fields);
int64_t ChannelBytes(const ElementCode& code);

// Units of 16 bytes that the channels of a block take in shared memory; 0 where
// they are not kept there.
int64_t SharedChannelUnits(const ElementCode& code,
                           const ConvGeometry& geometry);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CHANNEL_TEXT_H_
