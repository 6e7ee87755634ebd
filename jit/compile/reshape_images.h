#ifndef KILN_JIT_COMPILE_RESHAPE_IMAGES_H_
#define KILN_JIT_COMPILE_RESHAPE_IMAGES_H_

#include <optional>
#include <set>
#include <vector>

#include "jit/compile/lowered_plan.h"
#include "jit/compile/schedule.h"

namespace kiln {

// Gives convolutions of one tap images of other extents (Node::image): of
// H' x W' = H x W pixels in the same order, whose rows begin where an access of
// 16 bytes may, or else one of 8, so that they can take pixels as they lie
// (conv_lines.cuh). Where that is of use: for images of 16-bit numbers, and of
// those that may be laid down so (lay_lines.cu); and nothing that the
// convolution's kernel may compute can tell: what follows are batch norms,
// reductions of whole images and pointwise ops of whole images. `apart`:
// results of convolutions whose images stay as they are.
LoweredPlan ReshapeImages(LoweredPlan plan, const std::set<int>& apart);

// Whether `node` is a convolution that this can be done for.
bool CanReshape(const LoweredPlan& plan, const Node& node);

// Whether all kernels of convolutions of other images are such that it can be
// done: others than the ops behind them, too, may have joined their kernels.
bool AreImagesSuited(const Schedule& schedule);

// Results of convolutions of which that is not so, or whose images lie side by
// side (join_images.h) and no tile can store them apart. And of those that
// would take longer in rows, as models predict.
std::set<int> UnsuitedImages(const Schedule& schedule,
                             const ConvOptions& options);

// Nodes that read what a convolution makes, or what those of them that are
// pointwise make: all that might become part of its kernel behind it.
std::vector<const Node*> NodesBehind(const LoweredPlan& plan, const Node& conv);

// Whether any of these reduces or pools.
bool IsReducedBehind(const LoweredPlan& plan, const Node& conv);

// Whether a convolution has one tap, which reads the pixel that it makes.
bool HasOneTap(const LoweredPlan& plan, const Node& node);

// Whether it is a convolution whose filter is as large as its images, at one
// place: a linear layer.
bool IsLinearLayer(const LoweredPlan& plan, const Node& node);

// Of images of these extents, others whose rows are a multiple of eight pixels
// or, where theirs are not of four, of four. The longest up to 512; null where
// there are none, and where rows are of eight already.
std::optional<Pair> RowsFor(const Pair& image);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_RESHAPE_IMAGES_H_
