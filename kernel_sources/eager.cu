// A kernel for each class of operation, of any extents and attributes: what a
// plan runs on before its own kernels are compiled. All that other templates
// have as constants are parameters here, so one module serves all plans.
//
// Values between operations are f32 and contiguous; kiln_eager_pointwise brings
// others into that form. Pointers of operands that are left out are null.
#include "eager_conv2d.cuh"
#include "eager_normalize.cuh"
#include "eager_parameters.cuh"
#include "eager_pointwise.cuh"
#include "eager_pool2d.cuh"
#include "eager_reduce.cuh"

// The result may replace an operand that is read at the same places.
extern "C" __global__ void __launch_bounds__(kiln::kEagerThreads)
    kiln_eager_pointwise(const kiln::EagerPointwise p, const void* a,
                         const void* b, void* result) {
  kiln::EagerPointwiseKernel(p, a, b, result);
}

// So may this one, of x.
extern "C" __global__ void __launch_bounds__(kiln::kEagerThreads)
    kiln_eager_normalize(const kiln::EagerNormalize p, const float* x,
                         const float* statistics, const float* mean,
                         const float* variance, const float* weight,
                         const float* bias, float* result) {
  kiln::EagerNormalizeKernel(p, x, {statistics, mean, variance, weight, bias},
                             result);
}

extern "C" __global__ void __launch_bounds__(kiln::kEagerThreads)
    kiln_eager_reduce(const kiln::EagerReduce p, const float* __restrict__ x,
                      kiln::EagerState* __restrict__ partials) {
  kiln::EagerReduceKernel(p, x, partials);
}

extern "C" __global__ void __launch_bounds__(kiln::kEagerThreads)
    kiln_eager_merge(const kiln::EagerReduce p,
                     const kiln::EagerState* __restrict__ partials,
                     float* __restrict__ result) {
  kiln::EagerMergeKernel(p, partials, result);
}

// Two blocks on a multiprocessor leave registers for all sums.
extern "C" __global__ void __launch_bounds__(kiln::kEagerThreads, 2)
    kiln_eager_conv2d(const kiln::EagerConv2d p, const float* __restrict__ x,
                      const float* __restrict__ weight,
                      const float* __restrict__ bias,
                      float* __restrict__ result) {
  kiln::EagerConv2dKernel(p, x, weight, bias, result);
}

extern "C" __global__ void __launch_bounds__(kiln::kEagerThreads)
    kiln_eager_pool2d(const kiln::EagerPool2d p, const float* __restrict__ x,
                      float* __restrict__ result) {
  kiln::EagerPool2dKernel(p, x, result);
}
