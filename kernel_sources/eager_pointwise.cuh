// result[i] = function(a[i], b[i]), where a and b may be broadcast, numbers,
// and of any storage type; so may the result. The only kernel of eager.cu that
// reads and writes 16-bit elements.
#ifndef KILN_KERNEL_SOURCES_EAGER_POINTWISE_CUH_
#define KILN_KERNEL_SOURCES_EAGER_POINTWISE_CUH_

#include "eager_extent.cuh"
#include "eager_parameters.cuh"
#include "math.cuh"
#include "point.cuh"
#include "storage_types.cuh"

namespace kiln {

__device__ inline float EagerApply(const EagerPointwise& p, float a, float b) {
  switch (p.function) {
    case EagerFunction::kRoundToF16:
      return Round<Float16>(a);
    case EagerFunction::kRoundToBF16:
      return Round<BFloat16>(a);
    case EagerFunction::kRelu:
      return Relu(a);
    case EagerFunction::kLeakyRelu:
      return LeakyRelu(a, p.numbers[0]);
    case EagerFunction::kGelu:
      return Gelu(a);
    case EagerFunction::kGeluTanh:
      return GeluTanh(a);
    case EagerFunction::kTanh:
      return Tanh(a);
    case EagerFunction::kSigmoid:
      return Sigmoid(a);
    case EagerFunction::kSilu:
      return Silu(a);
    case EagerFunction::kHardswish:
      return Hardswish(a);
    case EagerFunction::kHardsigmoid:
      return Hardsigmoid(a);
    case EagerFunction::kClamp:
      return Clamp(a, p.numbers[0], p.numbers[1]);
    case EagerFunction::kMish:
      return Mish(a);
    case EagerFunction::kSoftplus:
      return Softplus(a, p.numbers[0], p.numbers[1]);
    case EagerFunction::kElu:
      return Elu(a, p.numbers[0]);
    case EagerFunction::kAbs:
      return Abs(a);
    case EagerFunction::kNeg:
      return Neg(a);
    case EagerFunction::kExp:
      return Exp(a);
    case EagerFunction::kSqrt:
      return Sqrt(a);
    case EagerFunction::kAdd:
      return Add(a, b);
    case EagerFunction::kSub:
      return Sub(a, b);
    case EagerFunction::kMul:
      return Mul(a, b);
    case EagerFunction::kDiv:
      return Div(a, b);
    case EagerFunction::kMinimum:
      return Minimum(a, b);
    case EagerFunction::kMaximum:
      return Maximum(a, b);
    default:
      return a;
  }
}

__device__ inline float EagerLoad(const void* tensor, EagerType type,
                                  long long i) {
  switch (type) {
    case EagerType::kF16:
      return Load(static_cast<const Float16*>(tensor), i);
    case EagerType::kBF16:
      return Load(static_cast<const BFloat16*>(tensor), i);
    default:
      return static_cast<const float*>(tensor)[i];
  }
}

__device__ inline void EagerStore(void* tensor, EagerType type, long long i,
                                  float value) {
  switch (type) {
    case EagerType::kF16:
      return Store(static_cast<Float16*>(tensor), i, value);
    case EagerType::kBF16:
      return Store(static_cast<BFloat16*>(tensor), i, value);
    default:
      static_cast<float*>(tensor)[i] = value;
  }
}

// The operand's part in element i of the result.
__device__ inline float EagerElement(const EagerPointwise& p,
                                     const EagerOperand& operand,
                                     const void* tensor, long long i) {
  if (operand.type == EagerType::kNumber) return operand.number;
  if (operand.strides[0] == kEagerWhole) {
    return EagerLoad(tensor, operand.type, i);
  }
  long long rest = i;
  long long place = 0;
#pragma unroll
  for (int axis = 3; axis >= 0; --axis) {
    place += TakeInner(p.dims[axis], &rest) * operand.strides[axis];
  }
  return EagerLoad(tensor, operand.type, place);
}

__device__ inline void EagerPointwiseKernel(const EagerPointwise& p,
                                            const void* a, const void* b,
                                            void* result) {
#pragma unroll 1
  for (long long i = GridStart<long long>(); i < p.count;
       i += GridStride<long long>()) {
    const float x = EagerElement(p, p.operands[0], a, i);
    const float y = EagerElement(p, p.operands[1], b, i);
    EagerStore(result, p.result, i, EagerApply(p, x, y));
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_EAGER_POINTWISE_CUH_
