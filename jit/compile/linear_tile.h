#ifndef KILN_JIT_COMPILE_LINEAR_TILE_H_
#define KILN_JIT_COMPILE_LINEAR_TILE_H_

#include <optional>
#include <string>
#include <vector>

#include "jit/artifact/target.h"
#include "jit/compile/lowered_plan.h"
#include "jit/plan/plan.h"

namespace kiln {

// How kernels that read their operands as they lie do a convolution whose
// filter is as large as its images, a linear layer.
struct LinearWay {
  DirectTile tile;
  std::optional<double> cycles;  // of a multiprocessor, predicted
};

// Tiles of linear.cu where the target has warpgroups, those of least predicted
// time first: of 16-bit numbers, or of f32 in parts (split_rows.h). In front of
// them dense.cu, if it takes the layer, or behind the first where products or
// weights are many. None where `node` is no linear layer, or tensor cores do it
// as they do other convolutions. `spare_registers`: that tiles leave to what
// follows their sums.
std::vector<LinearWay> LinearWays(const LoweredPlan& plan, const Node& node,
                                  Grade grade, const Target& target,
                                  int spare_registers = 0);

// Whether blocks have all of `results` channels.
bool HasAllResults(const LinearTile& tile, int64_t results);

// Members of its Spec.
std::vector<std::string> LinearConstants(const LinearTile& tile);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_LINEAR_TILE_H_
