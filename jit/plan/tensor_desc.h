#ifndef KILN_JIT_PLAN_TENSOR_DESC_H_
#define KILN_JIT_PLAN_TENSOR_DESC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "jit/plan/data_type.h"

namespace kiln {

// Extents of a tensor, outermost first; empty for a scalar (rank 0). Images
// are N x C x H x W.
using Dims = std::vector<int64_t>;

// Type and extents of a contiguous (row-major) tensor. A value.
struct TensorDesc {
  DataType dtype = DataType::kF32;
  Dims dims;

  friend bool operator==(const TensorDesc&, const TensorDesc&) = default;
};

// Product of the extents; 1 for a scalar. The extents must have passed
// ValidatePlan, which bounds every tensor, so the product cannot overflow.
int64_t NumElements(const Dims& dims);

// Bytes of the contiguous tensor, without padding.
int64_t SizeBytes(const TensorDesc& desc);

// "f32[128,8,128,128]"; "f32[]" for a scalar.
std::string ToString(const TensorDesc& desc);

}  // namespace kiln

#endif  // KILN_JIT_PLAN_TENSOR_DESC_H_
