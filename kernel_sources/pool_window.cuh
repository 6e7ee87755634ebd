// The part of an image that lies under a pooling's window.
#ifndef KILN_KERNEL_SOURCES_POOL_WINDOW_CUH_
#define KILN_KERNEL_SOURCES_POOL_WINDOW_CUH_

namespace kiln {

// The part [begin, end) of a window along one axis, and how long it would be
// with the padding counted.
template <typename Index>
struct Window {
  Index begin, end, padded_length;
};

template <typename Index>
__device__ Window<Index> WindowAt(Index output, int kernel, int stride,
                                  int padding, Index extent) {
  const Index begin = output * stride - padding;
  const Index padded_end = min(begin + kernel, extent + padding);
  return {max(begin, static_cast<Index>(0)), min(padded_end, extent),
          padded_end - begin};
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_POOL_WINDOW_CUH_
