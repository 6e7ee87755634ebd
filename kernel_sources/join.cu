// Images side by side: all pixels of a channel, image by image.
//
//   output[c, n, p] = input[n, c, p]
//
// input N x C x H x W, output 1 x C x N x P with P = H W pixels, contiguous.
#include "move_elements.cuh"

namespace kiln {

template <typename Spec>
__device__ void Join(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  using Input = typename Spec::Input;
  MoveElements<Spec>(t, [](const Point<Index>& at) -> Source<Index> {
    return {
        PointAt<Input, Index>(at.h, at.c, at.w / Input::kW, at.w % Input::kW)};
  });
}

}  // namespace kiln
