// Small images in rows and columns of one, and results cut out of it.
//
//   output[c, q * kPitchH + y, p * kPitchW + x] = input[q * kAcross + p, c, y,
//                                                       x], zero elsewhere
//
// for input N x C x H x W, output 1 x C x ... with kAcross images in a row; and
// the other way for input 1 x C x ..., output N x C x H x W. Contiguous.
#include "move_elements.cuh"

namespace kiln {

// The last image's last element stands for what is not there: it can be read.
template <typename Spec>
__device__ void Mosaic(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  using Input = typename Spec::Input;
  MoveElements<Spec>(t, [](const Point<Index>& at) -> Source<Index> {
    const Index n = at.h / Spec::kPitchH * Spec::kAcross + at.w / Spec::kPitchW;
    const Index h = at.h % Spec::kPitchH;
    const Index w = at.w % Spec::kPitchW;
    return {PointAt<Input, Index>(min(n, Input::kN - 1), at.c,
                                  min(h, Input::kH - 1), min(w, Input::kW - 1)),
            n < Input::kN && h < Input::kH && w < Input::kW};
  });
}

template <typename Spec>
__device__ void CutMosaic(const typename Spec::Tensors& t) {
  using Index = typename Spec::Index;
  using Input = typename Spec::Input;
  MoveElements<Spec>(t, [](const Point<Index>& at) -> Source<Index> {
    return {PointAt<Input, Index>(0, at.c,
                                  at.n / Spec::kAcross * Spec::kPitchH + at.h,
                                  at.n % Spec::kAcross * Spec::kPitchW + at.w)};
  });
}

}  // namespace kiln
