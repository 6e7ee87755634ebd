// The input of a convolution of one tap as lay_lines.cu lays it down for
// conv_lines.cuh: scaled halves of each part, [part][image][channel][row]
// [column], with zeros where a row is filled up to eights of pixels, and the
// factor that undoes each pixel's scale, [image][row][column].
#ifndef KILN_KERNEL_SOURCES_LAID_LINES_CUH_
#define KILN_KERNEL_SOURCES_LAID_LINES_CUH_

namespace kiln {

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
