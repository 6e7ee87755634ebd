// v0 = mean(i0, dim=1, keepdim=true)
// v1 = sub(i0, v0)
// v2 = mul(v1, v1)
// v3 = mean(v2, dim=1, keepdim=true)
// v4 = add(v3, 1e-05)
// v5 = sqrt(v4)
// v6 = div(v1, v5)
// v7 = mul(v6, i1)
#include "row_warp_chain.cu"
#include "dependent_launch.cuh"

struct Spec {
  using Index = int;
  struct Domain {
    static constexpr Index kN = 1, kC = 1, kH = 8192, kW = 1024;
  };
  struct RowDomain {
    static constexpr Index kN = 1, kC = 1, kH = 1, kW = 8192;
  };
  static constexpr Index kRows = 8192, kRowLength = 1024, kPitch = 1, kRun = 1024;
  static constexpr int kVector = 8, kThreads = 128, kLanes = 32;
  static constexpr int kLinks = 2, kCluster = 1;
  static constexpr bool kWritesElements = true, kWritesRows = true;
  static constexpr bool kBackwards = false;

  struct Tensors {
    const kiln::BFloat16* i0;
    const kiln::BFloat16* i1;
    kiln::BFloat16* output0;
    kiln::BFloat16* output1;
  };

  struct Statistics {
    float v0, v3, v4, v5;
    kiln::Divisor v5_divisor;
  };
  struct Made {
  };
  template <int kCount>
  struct Held {
    kiln::Vector<kiln::BFloat16, kCount> i0;
    kiln::Vector<kiln::BFloat16, kCount> i1;
    kiln::Results<kiln::BFloat16, kCount> output0;
  };
  template <int kCount>
  static __device__ void FetchForRead(const Tensors& t,
                                      const kiln::Point<Index>& at,
                                      bool is_aligned, Held<kCount>* held) {
    kiln::FetchCompactly(t.i0, at.i, is_aligned, &held->i0);
  }
  template <int kCount>
  static __device__ void FetchForElement(const Tensors& t,
                                         const kiln::Point<Index>& at,
                                         bool is_aligned, Held<kCount>* held) {
    kiln::FetchCompactly(t.i1, at.w, is_aligned, &held->i1);
  }
  template <int kCount>
  static __device__ void PutResults(const Tensors& t, Index i,
                                    bool is_aligned,
                                    const Held<kCount>& held) {
    kiln::Put(held.output0, is_aligned, t.output0, i);
  }
  static __device__ bool IsAligned(const Tensors& t) {
    return kiln::AreAligned(t.i0, t.i1, t.output0);
  }
  static __device__ kiln::Mean StateOf(kiln::Link<0>);
  static constexpr __device__ int BlocksOf(kiln::Link<0>) { return 1; }
  template <typename Fields, typename At>
  static __device__ float Value(Fields& t, const At& at,
                                const Statistics& row, Made& made, kiln::Link<0>) {
    const float i0 = kiln::Load(t.i0, at.i);
    return i0;
  }
  static __device__ void Finish(const kiln::Mean& state, kiln::Link<0>,
                                Statistics* row) {
    const float v0 = state.Value(0x1p+10f);
    row->v0 = v0;
  }
  static __device__ kiln::Mean StateOf(kiln::Link<1>);
  static constexpr __device__ int BlocksOf(kiln::Link<1>) { return 1; }
  template <typename Fields, typename At>
  static __device__ float Value(Fields& t, const At& at,
                                const Statistics& row, Made& made, kiln::Link<1>) {
    const float i0 = kiln::Load(t.i0, at.i);
    const float v1 = kiln::Sub(i0, row.v0);
    const float v2 = kiln::Mul(v1, v1);
    return v2;
  }
  static __device__ void Finish(const kiln::Mean& state, kiln::Link<1>,
                                Statistics* row) {
    const float v3 = state.Value(0x1p+10f);
    const float v4 = kiln::Add(v3, 0x1.4f8b58p-17f);
    const float v5 = kiln::Sqrt(v4);
    row->v3 = v3;
    row->v4 = v4;
    row->v5 = v5;
    row->v5_divisor = kiln::DivisorOf(v5);
  }
  static __device__ void RowElement(const Tensors& t,
                                    const kiln::Point<Index>& at,
                                    const Statistics& row) {
    kiln::Store(t.output1, at.i, row.v0);
  }

  template <typename Fields, typename At>
  static __device__ void Element(Fields& t, const At& at,
                                 const Statistics& row, const Made& made) {
    const float i0 = kiln::Load(t.i0, at.i);
    const float v1 = kiln::Sub(i0, row.v0);
    const float v6 = kiln::DivNearlyBy(v1, row.v5_divisor);
    const float i1 = kiln::Load(t.i1, at.w);
    const float v7 = kiln::Mul(v6, i1);
    kiln::Store(t.output0, at.i, v7);
  }
};

extern "C" __global__ void __launch_bounds__(128, 4)
kiln_row_warp_chain(const kiln::BFloat16* __restrict__ i0,
                    const kiln::BFloat16* __restrict__ i1,
                    kiln::BFloat16* __restrict__ output0,
                    kiln::BFloat16* __restrict__ output1) {
  kiln::AwaitPrevious();
  kiln::RowWarpChain<Spec>({i0, i1, output0, output1});
}
