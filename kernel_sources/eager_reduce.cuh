// output = reducer over some axes of the input, in two kernels: blocks leave
// the states of their shares, and a thread for each output merges those. Axes
// are seen as reduce.cu sees them. One fixed order.
#ifndef KILN_KERNEL_SOURCES_EAGER_REDUCE_CUH_
#define KILN_KERNEL_SOURCES_EAGER_REDUCE_CUH_

#include "eager_extent.cuh"
#include "eager_parameters.cuh"
#include "reducers.cuh"

namespace kiln {

// A state of any reducer, as it lies in memory.
struct EagerState {
  float words[4];
};

template <typename Reducer>
__device__ void PutState(const Reducer& state, EagerState* to) {
  static_assert(sizeof(Reducer) <= sizeof(EagerState), "No room.");
  const float* words = reinterpret_cast<const float*>(&state);
#pragma unroll
  for (int k = 0; k < static_cast<int>(sizeof(Reducer) / sizeof(float)); ++k) {
    to->words[k] = words[k];
  }
}

template <typename Reducer>
__device__ Reducer GetState(const EagerState& from) {
  Reducer state;
  float* words = reinterpret_cast<float*>(&state);
#pragma unroll
  for (int k = 0; k < static_cast<int>(sizeof(Reducer) / sizeof(float)); ++k) {
    words[k] = from.words[k];
  }
  return state;
}

// Where the input element of step `step` lies, behind that of step 0.
__device__ inline long long EagerStepAt(const EagerReduce& p, long long step) {
  long long r0 = step;
  const long long r1 = TakeInner(p.reduced1, &r0);
  return (r0 * p.kept1.size * p.reduced1.size + r1) * p.kept2.size;
}

// Where the input element of step 0 of output `output` lies.
__device__ inline long long EagerOutputAt(const EagerReduce& p,
                                          long long output) {
  long long k0 = output;
  const long long k2 = TakeInner(p.kept2, &k0);
  const long long k1 = TakeInner(p.kept1, &k0);
  const long long row = k0 * p.reduced0.size * p.kept1.size + k1;
  return row * p.reduced1.size * p.kept2.size + k2;
}

// Every `lanes`-th step from `begin` on, four of them in flight.
template <typename Reducer>
__device__ void EagerTake(const EagerReduce& p, const float* x, long long begin,
                          long long end, Reducer* state) {
  constexpr int kAtOnce = 4;
  long long step = begin;
#pragma unroll 1
  for (; step + (kAtOnce - 1) * p.lanes < end; step += kAtOnce * p.lanes) {
    float taken[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      taken[k] = x[EagerStepAt(p, step + k * p.lanes)];
    }
    Take(state, taken);
  }
#pragma unroll 1
  for (; step < end; step += p.lanes) {
    const float taken[1] = {x[EagerStepAt(p, step)]};
    Take(state, taken);
  }
}

// All threads of the block must call it.
template <typename Reducer>
__device__ void EagerReduceBlock(const EagerReduce& p, const float* x,
                                 EagerState* partials) {
  __shared__ EagerState states[kEagerThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const int columns = kEagerThreads / p.lanes;
  const int lane = p.lane_pitch == 1 ? thread % p.lanes : thread / columns;
  const int column = p.lane_pitch == 1 ? thread / p.lanes : thread % columns;
  const long long output =
      static_cast<long long>(blockIdx.x) * columns + column;
  const long long begin = static_cast<long long>(blockIdx.y) * p.split_steps;
  const long long end = min(begin + p.split_steps, p.steps);

  Reducer state;
  if (output < p.outputs) {
    EagerTake(p, x + EagerOutputAt(p, output), begin + lane, end, &state);
  }
  PutState(state, &states[thread]);
#pragma unroll 1
  for (int distance = p.lanes / 2; distance > 0; distance /= 2) {
    // What the lanes above have written is there.
    __syncthreads();
    if (lane < distance) {
      state.Merge(GetState<Reducer>(states[thread + distance * p.lane_pitch]));
      PutState(state, &states[thread]);
    }
  }
  if (lane == 0 && output < p.outputs) {
    PutState(state, &partials[output * p.splits + blockIdx.y]);
  }
}

__device__ inline void EagerReduceKernel(const EagerReduce& p, const float* x,
                                         EagerState* partials) {
  switch (p.reducer) {
    case EagerReducer::kSum:
    case EagerReducer::kMean:
      return EagerReduceBlock<Sum>(p, x, partials);
    case EagerReducer::kAmax:
      return EagerReduceBlock<Amax>(p, x, partials);
    case EagerReducer::kAmin:
      return EagerReduceBlock<Amin>(p, x, partials);
    case EagerReducer::kLogSumExp:
    case EagerReducer::kSoftmax:
      return EagerReduceBlock<LogSumExp>(p, x, partials);
    case EagerReducer::kMoments:
      return EagerReduceBlock<Moments>(p, x, partials);
  }
}

template <typename Reducer>
__device__ Reducer EagerMerged(const EagerReduce& p, const EagerState* states) {
  Reducer state = GetState<Reducer>(states[0]);
#pragma unroll 1
  for (int split = 1; split < p.splits; ++split) {
    state.Merge(GetState<Reducer>(states[split]));
  }
  return state;
}

__device__ inline void EagerMergeOutput(const EagerReduce& p,
                                        const EagerState* states,
                                        long long output, float* result) {
  const float count = static_cast<float>(p.steps);
  switch (p.reducer) {
    case EagerReducer::kSum:
      result[output] = EagerMerged<Sum>(p, states).Value(count);
      return;
    case EagerReducer::kMean:
      result[output] = EagerMerged<Mean>(p, states).Value(count);
      return;
    case EagerReducer::kAmax:
      result[output] = EagerMerged<Amax>(p, states).Value(count);
      return;
    case EagerReducer::kAmin:
      result[output] = EagerMerged<Amin>(p, states).Value(count);
      return;
    case EagerReducer::kLogSumExp:
      result[output] = EagerMerged<LogSumExp>(p, states).Value(count);
      return;
    case EagerReducer::kMoments: {
      const Moments moments = EagerMerged<Moments>(p, states);
      result[2 * output] = moments.mean;
      result[2 * output + 1] = moments.Variance();
      return;
    }
    case EagerReducer::kSoftmax: {
      const SoftmaxSum sum = EagerMerged<SoftmaxSum>(p, states);
      result[2 * output] = sum.largest;
      result[2 * output + 1] = sum.Denominator();
      return;
    }
  }
}

__device__ inline void EagerMergeKernel(const EagerReduce& p,
                                        const EagerState* partials,
                                        float* result) {
  const long long output =
      static_cast<long long>(blockIdx.x) * kEagerThreads + threadIdx.x;
  if (output >= p.outputs) return;
  EagerMergeOutput(p, partials + output * p.splits, output, result);
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_EAGER_REDUCE_CUH_
