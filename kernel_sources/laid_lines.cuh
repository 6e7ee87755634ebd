// The input of a convolution of one tap as conv_lines.cuh takes it, laid down
// by lay_lines.cu or by the convolution that makes it (conv_rounded.cuh):
// scaled halves of each part, [part][image][channel][row][column], where rows
// are filled up to eights of pixels, and the factor that undoes each pixel's
// scale, [image][row][column]. lay_lines.cu fills rows up with zeros;
// otherwise they end in anything, and the scales lie behind the factors, as
// bfloat16, for whoever lays numbers down.
#ifndef KILN_KERNEL_SOURCES_LAID_LINES_CUH_
#define KILN_KERNEL_SOURCES_LAID_LINES_CUH_

namespace kiln {

// Of the input or, as one tap has as many pixels, of the results (of transposed
// convolutions none are laid down).
template <typename Spec>
struct LaidLines {
  using Index = typename Spec::Index;
  using Input = typename Spec::Input;
  static constexpr int kPlane =
      static_cast<int>(Input::kH) * static_cast<int>(Spec::kLinePitch);
  static constexpr Index kPart =
      static_cast<Index>(Input::kN) * Input::kC * kPlane;
  static_assert(Spec::kLinePitch % 8 == 0, "Lines are whole units.");
};

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_LAID_LINES_CUH_
