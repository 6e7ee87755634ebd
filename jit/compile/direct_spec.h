#ifndef KILN_JIT_COMPILE_DIRECT_SPEC_H_
#define KILN_JIT_COMPILE_DIRECT_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "jit/compile/direct_tile.h"

namespace kiln {

// What a kernel of a direct convolution (direct_conv.h) has that others have
// not.
struct DirectKernel {
  std::string source_file;
  std::string name;
  std::string function;
  std::vector<std::string> constants;  // of its Spec, one line each
  uint32_t cluster = 1;                // blocks
};

DirectKernel DirectKernelOf(const DirectTile& tile);

// Why it was chosen, for people.
std::string WhyDirect(const DirectTile& tile);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_DIRECT_SPEC_H_
