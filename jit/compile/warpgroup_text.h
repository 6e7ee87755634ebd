#ifndef KILN_JIT_COMPILE_WARPGROUP_TEXT_H_
#define KILN_JIT_COMPILE_WARPGROUP_TEXT_H_

#include <string>
#include <vector>

#include "jit/compile/conv_geometry.h"

namespace kiln {

// Spec::AddProducts of conv_wgmma.cu, and Spec::AddSmallProducts for the small
// parts of the input, whose products go to sums of their own where the weights
// have small parts too.
std::vector<std::string> WarpgroupProducts(const ConvGeometry& geometry);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_WARPGROUP_TEXT_H_
