#ifndef KILN_JIT_COMPILE_CONV_FUSION_H_
#define KILN_JIT_COMPILE_CONV_FUSION_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "jit/compile/conv_choice.h"
#include "jit/compile/fusion.h"

namespace kiln {

// Groups of which some are convolutions on tensor cores, with what follows
// them. `geometry`, and what was asked of it, are by node of the convolution
// and of the tail, -1 where there is none.
struct ConvFusion {
  std::vector<KernelGroup> groups;
  std::map<std::pair<int, int>, ConvGeometry> geometry;
  std::map<std::pair<int, int>, ConvDemands> demands;
};

// Multiply-adds for each element of the result that, together with reading the
// input once more, take as long as writing and reading that element in f32. A
// convolution with fewer is computed again rather than stored, unless blocks
// hold it (conv_finish.h). 0 where reading the input takes as long by itself.
int64_t ProductsPerRoundTrip(const ConvProblem& problem);

// Products of parts of the operands that each of their products is.
int64_t ProductsOfParts(DataType input, Grade grade);

// Multiply-adds of the tensor cores for each element of the result.
int64_t ProductsPerElement(const ConvProblem& problem, Grade grade);

// Channels that share a state in the kernel of a convolution with results of
// extents `dims` that `tail` follows: those of a normalised group, or one where
// it is a sum, mean or extreme of each channel's image; 0: of other tails.
int64_t ChannelsOfState(const Node& tail, const Dims& dims);

// Gives convolutions to the tensor cores where they take them. The first
// statistic, reduction over channels or images, or pooling that reads a
// convolution joins its kernel as the tail. Where more kernels read it and
// computing it again costs less than writing and reading it, each becomes a
// kernel that begins with the convolution; otherwise the result goes through
// memory. `rank`: of the layout of warps that each convolution gets
// (conv_search.h).
ConvFusion FuseConvolutions(const LoweredPlan& plan,
                            std::vector<KernelGroup> groups,
                            const ConvOptions& options, int rank = 0);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_FUSION_H_
