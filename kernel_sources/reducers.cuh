// What a reduction carries along: small states that take values in and merge
// with each other. Merging in a fixed order makes results reproducible; every
// state keeps enough to be as exact as f32 allows however long the input is.
//
//   kiln::Sum state;
//   state.Add(1.0f);
//   state.Merge(other);
//   const float result = state.Value(count);
#ifndef KILN_KERNEL_SOURCES_REDUCERS_CUH_
#define KILN_KERNEL_SOURCES_REDUCERS_CUH_

#include "math.cuh"

namespace kiln {

__device__ inline float Infinity() { return __int_as_float(0x7f800000); }

// A running sum with the rounding errors summed beside it (Neumaier 1974, by
// Knuth's exact two-sum): right to about one rounding of the result, and to
// what Take loses.
struct Sum {
  float sum = 0.0f;
  float error = 0.0f;

  __device__ void Add(float x) {
    const float total = sum + x;
    const float added = total - sum;
    error += (sum - (total - added)) + (x - added);
    sum = total;
  }
  __device__ void Merge(const Sum& other) {
    Add(other.sum);
    error += other.error;
  }
  // An infinite sum has a NaN for its error, which does not count.
  __device__ float Total() const {
    return fabsf(sum) < Infinity() ? sum + error : sum;
  }
  __device__ float Value(float) const { return Total(); }
};

struct Mean : Sum {
  __device__ float Value(float count) const {
    return QuotientByConstant(Total(), count);
  }
};

struct Amax {
  float largest = -Infinity();

  __device__ void Add(float x) { largest = Maximum(largest, x); }
  __device__ void Merge(const Amax& other) { Add(other.largest); }
  __device__ float Value(float) const { return largest; }
};

struct Amin {
  float smallest = Infinity();

  __device__ void Add(float x) { smallest = Minimum(smallest, x); }
  __device__ void Merge(const Amin& other) { Add(other.smallest); }
  __device__ float Value(float) const { return smallest; }
};

// log of the sum of e^x, kept as the largest x and the sum of e^(x - largest).
// Any +inf gives +inf, all -inf give -inf, a NaN gives NaN: where the largest
// is infinite, the sum is of e^x, or of ones.
struct LogSumExp {
  float largest = -Infinity();
  Sum scaled;

  __device__ void Add(float x) {
    if (x > largest) {
      Rescale(Exp(largest - x));
      largest = x;
      scaled.Add(1.0f);
    } else {
      scaled.Add(x == largest ? 1.0f : Exp(x - largest));
    }
  }
  __device__ void Merge(LogSumExp other) {
    const float larger = fmaxf(largest, other.largest);
    if (largest != larger) Rescale(Exp(largest - larger));
    if (other.largest != larger) other.Rescale(Exp(other.largest - larger));
    largest = larger;
    scaled.Merge(other.scaled);
  }
  __device__ float Value(float) const { return largest + Log(scaled.Total()); }

  // Changes the scale to a value no smaller than the largest so far.
  __device__ void RaiseTo(float larger) {
    Rescale(Exp(largest == larger ? 0.0f : largest - larger));
    largest = larger;
  }
  __device__ void Rescale(float factor) {
    scaled.sum *= factor;
    scaled.error *= factor;
  }
};

// The largest value but for NaNs: what softmax subtracts in two passes.
struct Largest {
  float value = -Infinity();

  __device__ void Merge(const Largest& other) {
    value = fmaxf(value, other.value);
  }
};

// The two numbers that softmax needs of its axis: the largest value and the
// sum of e^(x - largest), which is NaN where an input is +inf, as in PyTorch.
struct SoftmaxSum : LogSumExp {
  __device__ float Denominator() const {
    return largest == Infinity() ? largest - largest : scaled.Total();
  }
};

// Count, mean and sum of squared differences from the mean, never a raw sum
// of squares: right also where the mean is thousands of deviations from zero.
// Merge: Chan, Golub and LeVeque, "Updating formulae", 1979.
struct Moments {
  float count = 0.0f;
  float mean = 0.0f;
  float m2 = 0.0f;

  __device__ void Add(float x) {
    Moments one;
    one.count = 1.0f;
    one.mean = x;
    Merge(one);
  }
  __device__ void Merge(const Moments& other) {
    // No branches: they would take longer, to compile and to run.
    const bool is_first = count == 0.0f;
    const bool is_last = other.count == 0.0f;
    const float total = count + other.count;
    const float delta = other.mean - mean;
    const float share = other.count * Reciprocal(total);
    const float merged_mean = mean + delta * share;
    const float merged_m2 = m2 + (other.m2 + delta * delta * count * share);
    mean = is_first ? other.mean : is_last ? mean : merged_mean;
    m2 = is_first ? other.m2 : is_last ? m2 : merged_m2;
    count = total;
  }
  __device__ float Variance() const { return __fdividef(m2, count); }
};

// Whether states share their scale before they are merged.
template <typename Reducer>
constexpr bool kHasScale = false;
template <>
constexpr bool kHasScale<LogSumExp> = true;
template <>
constexpr bool kHasScale<SoftmaxSum> = true;

// All values combined in pairs: a chain would be what a warp waits for.
template <int kCount, typename Combine>
__device__ float OfAll(const float (&x)[kCount], Combine combine) {
  float left[kCount];
#pragma unroll
  for (int k = 0; k < kCount; ++k) left[k] = x[k];
#pragma unroll
  for (int step = 1; step < kCount; step *= 2) {
#pragma unroll
    for (int k = 0; k + step < kCount; k += 2 * step) {
      left[k] = combine(left[k], left[k + step]);
    }
  }
  return left[0];
}

// In pairs the sum of equal values is exact, too.
template <int kCount>
__device__ float SumOf(const float (&x)[kCount]) {
  return OfAll(x, Add);
}

// Take: many values at once, while they are in registers.
//
// Eight are summed in pairs, whose roundings are those of small sums: a third
// of the instructions, and errors below those of one sum after the other.
template <int kCount>
__device__ void Take(Sum* state, const float (&x)[kCount]) {
  constexpr int kEight = kCount < 8 ? kCount : 8;
#pragma unroll
  for (int k = 0; k < kCount; k += kEight) {
    float some[kEight];
#pragma unroll
    for (int j = 0; j < kEight; ++j) some[j] = k + j < kCount ? x[k + j] : 0.0f;
    state->Add(SumOf(some));
  }
}

template <int kCount>
__device__ void Take(Amax* state, const float (&x)[kCount]) {
#pragma unroll
  for (int k = 0; k < kCount; ++k) state->Add(x[k]);
}

template <int kCount>
__device__ void Take(Amin* state, const float (&x)[kCount]) {
#pragma unroll
  for (int k = 0; k < kCount; ++k) state->Add(x[k]);
}

template <int kCount>
__device__ void Take(Largest* state, const float (&x)[kCount]) {
#pragma unroll
  for (int k = 0; k < kCount; ++k) state->value = fmaxf(state->value, x[k]);
}

// What the largest of some values is subtracted as: infinities are left alone,
// so that differences with them are infinities again.
__device__ inline float PivotOf(float largest) {
  return fabsf(largest) < Infinity() ? largest : 0.0f;
}

// One change of scale for all, without a branch: 1 where the largest stays.
template <int kCount>
__device__ void Take(LogSumExp* state, const float (&x)[kCount]) {
  float largest = state->largest;
#pragma unroll
  for (int k = 0; k < kCount; ++k) largest = fmaxf(largest, x[k]);
  state->RaiseTo(largest);
  const float pivot = PivotOf(largest);
  float terms[kCount];
#pragma unroll
  for (int k = 0; k < kCount; ++k) terms[k] = Exp(x[k] - pivot);
  state->scaled.Add(SumOf(terms));
}

// Mean and differences from it, then one merge.
template <int kCount>
__device__ void Take(Moments* state, const float (&x)[kCount]) {
  Moments batch;
  batch.count = static_cast<float>(kCount);
  batch.mean = SumOf(x) * (1.0f / kCount);
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    const float difference = x[k] - batch.mean;
    batch.m2 = fmaf(difference, difference, batch.m2);
  }
  state->Merge(batch);
}

// What changes nothing when it is taken, where there is such a value.
template <typename Reducer>
__device__ float NeutralOf() {
  if constexpr (__is_base_of(Sum, Reducer)) return 0.0f;
  if constexpr (__is_base_of(Amin, Reducer)) return Infinity();
  return -Infinity();
}

template <typename Reducer>
constexpr bool kHasNeutral = !__is_base_of(Moments, Reducer);

// Takes the first `count` vectors of `x`; the others may be anything. Where no
// value is neutral, one after another: the code of taking is long, so it is a
// loop, through which the others move up.
template <int kVector, int kCount, typename Index, typename Reducer>
__device__ void TakeFirst(Index count, float (&x)[kCount], Reducer* state) {
  if constexpr (kHasNeutral<Reducer>) {
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      if (k / kVector >= count) x[k] = NeutralOf<Reducer>();
    }
    Take(state, x);
  } else {
#pragma unroll 1
    for (Index k = 0; k < count; ++k) {
      float first[kVector];
#pragma unroll
      for (int j = 0; j < kVector; ++j) first[j] = x[j];
      Take(state, first);
#pragma unroll
      for (int j = 0; j + kVector < kCount; ++j) x[j] = x[j + kVector];
    }
  }
}

}  // namespace kiln

#endif  // KILN_KERNEL_SOURCES_REDUCERS_CUH_
