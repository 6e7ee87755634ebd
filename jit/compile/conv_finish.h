#ifndef KILN_JIT_COMPILE_CONV_FINISH_H_
#define KILN_JIT_COMPILE_CONV_FINISH_H_

#include <cstdint>

#include "jit/compile/conv_fusion.h"

namespace kiln {

// Elements that conv_finish.cuh takes at once, and warps of a block that do:
// one takes longer than a block computes, of three the producers feel the lack
// (docs/kernel-notes).
inline constexpr int64_t kFinishVector = 4;
inline constexpr int64_t kFinishWarps = 2;

// Lets a convolution that leaves statistics also do what needs them, a
// pointwise group on what it stores, where its blocks come in many waves and
// leave the memory time for that. Before, both were a kernel each, and
// afterwards they are one group with nodes in `finish`. `holds`: also where
// blocks can hold images until they have the statistics (conv_held.cuh), if
// that is predicted to be faster; the group then has another geometry. Then the
// second kernel may also have computed the convolution again.
void FinishConvolutions(const LoweredPlan& plan, const ConvOptions& options,
                        bool holds, ConvFusion* fusion);

// For how many blocks earlier a block of `geometry` finishes: for as many as an
// image has, so that all of the image's have started, as many as are resident,
// so that they are done, and half of those again, for some are late.
int64_t FinishLag(const ConvGeometry& geometry, const Target& target);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_FINISH_H_
