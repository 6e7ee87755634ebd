#ifndef KILN_KERNEL_SOURCES_KERNEL_SOURCES_H_
#define KILN_KERNEL_SOURCES_KERNEL_SOURCES_H_

#include <span>
#include <string_view>

namespace kiln {

// A file of this folder as it was when the program was built.
struct KernelSource {
  std::string_view name;  // as another includes it: "conv2d.cu"
  std::string_view text;
};

// Every .cu and .cuh file of this folder, by name. They include only each
// other.
std::span<const KernelSource> KernelSources();

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_KERNEL_SOURCES_H_
