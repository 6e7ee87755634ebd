#ifndef KILN_JIT_COMPILE_CONV_CHOICE_H_
#define KILN_JIT_COMPILE_CONV_CHOICE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "jit/artifact/target.h"
#include "jit/compile/conv_geometry.h"

namespace kiln {

class ConvSearch;
class KnownTiles;

// Tiles whose kernels did not fit in registers (ConvGeometry::IsTileOf).
using RefusedTiles = std::vector<ConvGeometry>;

struct ConvOptions {
  Grade grade = Grade::kFp32;  // decides whether operands are split in two
  Target target;
  int spare_registers = 0;  // of a thread, for what follows the convolution
  ConvSearch* search = nullptr;  // if any, is told of each tile that is tried
  bool warps_only = false;       // tiles of warpgroups are not tried
  const RefusedTiles* refused = nullptr;  // if any, are not chosen
  KnownTiles* known = nullptr;            // if any, of the same other options
};

// Null where the tensor cores of `target` do not take the convolution, or no
// tile meets the demands: before sm_80, one channel to a group, too large for
// 32-bit offsets.
std::optional<ConvGeometry> ChooseConvGeometry(const ConvProblem& problem,
                                               const ConvDemands& demands,
                                               const ConvOptions& options);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_CHOICE_H_
