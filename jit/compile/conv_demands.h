#ifndef KILN_JIT_COMPILE_CONV_DEMANDS_H_
#define KILN_JIT_COMPILE_CONV_DEMANDS_H_

#include <optional>
#include <set>
#include <vector>

#include "jit/compile/conv_geometry.h"
#include "jit/compile/fusion.h"
#include "jit/compile/lowered_plan.h"

namespace kiln {

// Results of the nodes of `conv`, a convolution's group, on its domain.
std::set<int> ElementsOf(const LoweredPlan& plan, const KernelGroup& conv);

// Of the kernel that begins with `conv` and goes on with all of `joining`;
// `stores`: others read the elements from memory.
ConvDemands ConvDemandsOf(const LoweredPlan& plan, const KernelGroup& conv,
                          const std::vector<const KernelGroup*>& joining,
                          bool stores);

// Numbers that the elements of a channel have in common for `nodes`, on the
// domain `dims`: scale and shift of a norm, and every operand of others that is
// no element.
int64_t ChannelFieldsOf(const LoweredPlan& plan, const std::vector<int>& nodes,
                        const Dims& dims);

// Whether what the elements of a channel have in common for `nodes` is another
// in each image.
bool VariesByImage(const LoweredPlan& plan, const std::vector<int>& nodes);

// Of a kernel with `demands` whose blocks hold images (conv_held.cuh), so that
// it also does what `user`, a pointwise group, does with the elements that
// statistics are taken of, or with what is pooled of these. Null if that is not
// all there is to do with them, or needs other tensors as large.
std::optional<ConvDemands> HeldDemandsOf(const LoweredPlan& plan,
                                         const KernelGroup& conv,
                                         const KernelGroup& user,
                                         const ConvDemands& demands);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_DEMANDS_H_
