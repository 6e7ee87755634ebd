#ifndef KILN_JIT_COMPILE_CONV_FUSION_H_
#define KILN_JIT_COMPILE_CONV_FUSION_H_

#include <map>
#include <utility>
#include <vector>

#include "jit/compile/conv_choice.h"
#include "jit/compile/fusion.h"

namespace kiln {

// Groups of which some are convolutions on tensor cores, with what follows
// them. `geometry` is by node of the convolution and of the tail, -1 where
// there is none.
struct ConvFusion {
  std::vector<KernelGroup> groups;
  std::map<std::pair<int, int>, ConvGeometry> geometry;
};

// Gives convolutions to the tensor cores where they take them. The first
// statistic, reduction over channels or pooling that reads a convolution joins
// its kernel as the tail. Where more kernels read it and computing it again
// costs less than writing and reading it, each becomes a kernel that begins
// with the convolution; otherwise the result goes through memory.
ConvFusion FuseConvolutions(const LoweredPlan& plan,
                            std::vector<KernelGroup> groups,
                            const ConvOptions& options);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_FUSION_H_
