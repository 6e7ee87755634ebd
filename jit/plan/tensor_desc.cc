#include "jit/plan/tensor_desc.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {

int64_t NumElements(const Dims& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

int64_t SizeBytes(const TensorDesc& desc) {
  return NumElements(desc.dims) * ElementSize(desc.dtype);
}

std::string ToString(const TensorDesc& desc) {
  return fmt::format("{}[{}]", DataTypeName(desc.dtype),
                     fmt::join(desc.dims, ","));
}

}  // namespace kiln
