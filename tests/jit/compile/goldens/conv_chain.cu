// v0 = conv2d(i0, i1, i2)
#include "conv2d.cu"
#include "dependent_launch.cuh"

struct Spec {
  using Index = int;
  struct Input {
    static constexpr Index kN = 128, kC = 8, kH = 128, kW = 128;
  };
  struct Output {
    static constexpr Index kN = 128, kC = 64, kH = 126, kW = 126;
  };
  static constexpr Index kGroups = 1;
  static constexpr Index kKernelH = 3, kKernelW = 3;
  static constexpr Index kStrideH = 1, kStrideW = 1;
  static constexpr Index kPaddingH = 0, kPaddingW = 0;
  static constexpr Index kDilationH = 1, kDilationW = 1;
  static constexpr bool kWrapsRows = false;
  static constexpr int kColumnsApart = 1;

  struct Tensors {
    const float* input;
    const float* weight;
    const float* bias;
    float* v0;
  };

  static __device__ void Element(const Tensors& t, const kiln::Point<Index>& at,
                                 float sum) {
    const float v0 = sum + kiln::Load(t.bias, at.c);
    kiln::Store(t.v0, at.i, v0);
  }
};

extern "C" __global__ void __launch_bounds__(256)
kiln_conv2d(const float* __restrict__ input, const float* __restrict__ weight,
            const float* __restrict__ bias, float* __restrict__ v0) {
  kiln::AwaitPrevious();
  kiln::Conv2d<Spec>({input, weight, bias, v0});
}

// statistics of v1 = group_norm(v0, i3, i4, num_groups=16)
#include "reduce.cu"
#include "dependent_launch.cuh"

struct Spec {
  using Index = int;
  struct Input {
    static constexpr Index kN = 128, kC = 64, kH = 126, kW = 126;
  };
  struct Output {
    static constexpr Index kN = 1, kC = 1, kH = 1, kW = 2048;
  };
  struct View {
    static constexpr Index kKept0 = 2048, kReduced0 = 63504;
    static constexpr Index kKept1 = 1, kReduced1 = 1;
    static constexpr Index kKept2 = 1;
  };
  using Reducer = kiln::Moments;
  static constexpr bool kRows = true;
  static constexpr int kThreads = 256, kLanes = 256, kSplits = 1;
  static constexpr int kVector = 4, kAtOnce = 4;
  static constexpr bool kBackwards = true;

  struct Tensors {
    const float* v0;
    float* v1_mean;
    float* v1_rstd;
  };

  // Neighbours that a thread holds in registers; else pointers.
  template <int kCount>
  struct Held {
    kiln::Vector<float, kCount> v0;
  };
  static __device__ bool IsAligned(const Tensors&) {
    return true;
  }
  template <int kCount>
  static __device__ void FetchHeld(const Tensors& t,
                                   const kiln::Point<Index>& at,
                                   bool is_aligned,
                                   Held<kCount>* held) {
    kiln::Fetch(t.v0, at.i, is_aligned, &held->v0);
  }

  template <typename Fields, typename At>
  static __device__ float Read(Fields& t, const At& at) {
    const float v0 = kiln::Load(t.v0, at.i);
    return v0;
  }

  template <typename Fields, typename At>
  static __device__ void Element(Fields& t, const At& at,
                                 const Reducer& state) {
    const float v1_mean = state.mean;
    const float v1_rstd =
        kiln::ReciprocalStd(state.Variance(), 0x1.4f8b58p-17f);
    kiln::Store(t.v1_mean, at.i, v1_mean);
    kiln::Store(t.v1_rstd, at.i, v1_rstd);
  }
};

extern "C" __global__ void __launch_bounds__(256, 4)
kiln_reduce(const float* __restrict__ v0, float* __restrict__ v1_mean,
            float* __restrict__ v1_rstd) {
  kiln::AwaitPrevious();
  kiln::Reduce<Spec>({v0, v1_mean, v1_rstd});
}

// v1 = group_norm(v0, i3, i4, num_groups=16)
// v2 = tanh(v1)
// v3 = hardswish(v2)
// v4 = add(v0, v3)
// v5 = logsumexp(v4, dim=1, keepdim=true)
#include "reduce.cu"
#include "dependent_launch.cuh"

struct Spec {
  using Index = int;
  struct Input {
    static constexpr Index kN = 128, kC = 64, kH = 126, kW = 126;
  };
  struct Output {
    static constexpr Index kN = 128, kC = 1, kH = 126, kW = 126;
  };
  struct View {
    static constexpr Index kKept0 = 128, kReduced0 = 64;
    static constexpr Index kKept1 = 15876, kReduced1 = 1;
    static constexpr Index kKept2 = 1;
  };
  using Reducer = kiln::LogSumExp;
  static constexpr bool kRows = false;
  static constexpr int kThreads = 256, kLanes = 1, kSplits = 1;
  static constexpr int kVector = 4, kAtOnce = 2;
  static constexpr bool kBackwards = false;

  struct Tensors {
    const float* v0;
    const float* v1_mean;
    const float* v1_rstd;
    const float* i3;
    const float* i4;
    float* output0;
  };

  // Neighbours that a thread holds in registers; else pointers.
  template <int kCount>
  struct Held {
    kiln::Vector<float, kCount> v0;
    const float* v1_mean;
    const float* v1_rstd;
    const float* i3;
    const float* i4;
  };
  static __device__ bool IsAligned(const Tensors&) {
    return true;
  }
  template <int kCount>
  static __device__ void FetchHeld(const Tensors& t,
                                   const kiln::Point<Index>& at,
                                   bool is_aligned,
                                   Held<kCount>* held) {
    kiln::Fetch(t.v0, at.i, is_aligned, &held->v0);
    held->v1_mean = t.v1_mean;
    held->v1_rstd = t.v1_rstd;
    held->i3 = t.i3;
    held->i4 = t.i4;
  }

  template <typename Fields, typename At>
  static __device__ float Read(Fields& t, const At& at) {
    const float v0 = kiln::Load(t.v0, at.i);
    const float v1_mean = kiln::Load(t.v1_mean, at.n * 16 + at.c / 4);
    const float v1_rstd = kiln::Load(t.v1_rstd, at.n * 16 + at.c / 4);
    const float i3 = kiln::Load(t.i3, at.c);
    const float i4 = kiln::Load(t.i4, at.c);
    const float v1 = kiln::Normalize(v0, v1_mean, v1_rstd, i3, i4);
    const float v2 = kiln::TanhBesideOne(v1);
    const float v3 = kiln::HardswishInside(v2);
    const float v4 = kiln::Add(v0, v3);
    return v4;
  }

  template <typename Fields, typename At>
  static __device__ void Element(Fields& t, const At& at,
                                 const Reducer& state) {
    const float v5 = state.Value(0x1p+6f);
    kiln::Store(t.output0, at.i, v5);
  }
};

extern "C" __global__ void __launch_bounds__(256)
kiln_reduce(const float* __restrict__ v0, const float* __restrict__ v1_mean,
            const float* __restrict__ v1_rstd, const float* __restrict__ i3,
            const float* __restrict__ i4, float* __restrict__ output0) {
  kiln::AwaitPrevious();
  kiln::Reduce<Spec>({v0, v1_mean, v1_rstd, i3, i4, output0});
}
