#ifndef KILN_JIT_COMPILE_CONV_CONSTANTS_H_
#define KILN_JIT_COMPILE_CONV_CONSTANTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jit/compile/conv_geometry.h"

namespace kiln {

// Members of a Spec: constants by name.
std::string BoolText(std::string_view name, bool value);
std::string IntText(std::string_view name, int64_t value);
std::string IntsText(std::string_view first, int64_t value,
                     std::string_view second, int64_t other);

// What conv_tile.cuh, conv_patch.cuh and conv_stages.cuh want to know.
std::vector<std::string> TileConstants(const ConvGeometry& geometry);
std::vector<std::string> PatchConstants(const ConvGeometry& geometry);
std::vector<std::string> StageConstants(const ConvGeometry& geometry);
// And conv_pooling.cuh, of the pooling `node`.
std::vector<std::string> PoolConstants(const ConvGeometry& geometry,
                                       const Node& node);

// Spec::Neutral, which a reduction by `op` does not heed.
std::string NeutralFunction(OpKind op);

// Whether places in tensors, and in tiles past their edges, need 64 bits;
// `domain` is that of the elements.
bool NeedsWideIndex(const ConvGeometry& geometry, const Dims& domain);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_CONSTANTS_H_
