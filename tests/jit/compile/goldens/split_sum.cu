// v0 = sum(i0, dim=0)
#include "reduce.cu"
#include "dependent_launch.cuh"

struct Spec {
  using Index = int;
  struct Input {
    static constexpr Index kN = 1, kC = 1, kH = 1, kW = 1048576;
  };
  struct Output {
    static constexpr Index kN = 1, kC = 1, kH = 1, kW = 1;
  };
  struct View {
    static constexpr Index kKept0 = 1, kReduced0 = 1048576;
    static constexpr Index kKept1 = 1, kReduced1 = 1;
    static constexpr Index kKept2 = 1;
  };
  using Reducer = kiln::Sum;
  static constexpr bool kRows = true;
  static constexpr int kThreads = 512, kLanes = 512, kSplits = 128;
  static constexpr int kVector = 8, kAtOnce = 2;
  static constexpr int kMergeThreads = 256, kMergeLanes = 32;
  static constexpr bool kBackwards = false;
  static_assert(sizeof(Reducer) == 8, "The workspace is laid out for this.");

  struct Tensors {
    const kiln::BFloat16* i0;
    kiln::BFloat16* output0;
    Reducer* partials;
  };

  // Neighbours that a thread holds in registers; else pointers.
  template <int kCount>
  struct Held {
    kiln::Vector<kiln::BFloat16, kCount> i0;
  };
  static __device__ bool IsAligned(const Tensors& t) {
    return kiln::AreAligned(t.i0);
  }
  template <int kCount>
  static __device__ void FetchHeld(const Tensors& t,
                                   const kiln::Point<Index>& at,
                                   bool is_aligned,
                                   Held<kCount>* held) {
    kiln::Fetch(t.i0, at.i, is_aligned, &held->i0);
  }

  template <typename Fields, typename At>
  static __device__ float Read(Fields& t, const At& at) {
    const float i0 = kiln::Load(t.i0, at.i);
    return i0;
  }

  template <typename Fields, typename At>
  static __device__ void Element(Fields& t, const At& at,
                                 const Reducer& state) {
    const float v0 = state.Value(0x1p+20f);
    kiln::Store(t.output0, at.i, v0);
  }
};

extern "C" __global__ void __launch_bounds__(512, 2)
kiln_reduce(const kiln::BFloat16* __restrict__ i0,
            kiln::BFloat16* __restrict__ output0,
            Spec::Reducer* __restrict__ partials) {
  kiln::AwaitPrevious();
  kiln::Reduce<Spec>({i0, output0, partials});
}

extern "C" __global__ void __launch_bounds__(256)
kiln_merge_splits(const kiln::BFloat16* __restrict__ i0,
                  kiln::BFloat16* __restrict__ output0,
                  Spec::Reducer* __restrict__ partials) {
  kiln::AwaitPrevious();
  kiln::MergeSplits<Spec>({i0, output0, partials});
}
