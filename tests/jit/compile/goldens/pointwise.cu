// v0 = add(i0, i1)
// v1 = mul(v0, i2)
// v2 = div(v1, 3)
// v3 = cast(v2, dtype=f16)
// v4 = leaky_relu(v3, negative_slope=0.1)
#include "pointwise.cu"
#include "dependent_launch.cuh"

struct Spec {
  using Index = int;
  struct Output {
    static constexpr Index kN = 2, kC = 3, kH = 4, kW = 5;
  };
  static constexpr int kVector = 1;
  static constexpr bool kBackwards = false;

  struct Tensors {
    const kiln::Float16* i0;
    const kiln::BFloat16* i1;
    const float* i2;
    kiln::Float16* output1;
    kiln::Float16* output0;
  };

  static __device__ void Element(const Tensors& t,
                                 const kiln::Point<Index>& at) {
    const float i0 = kiln::Load(t.i0, at.i);
    const float i1 = kiln::Load(t.i1, at.c);
    const float v0 = kiln::Add(i0, i1);
    const float i2 = kiln::Load(t.i2, at.w);
    const float v1 = kiln::Mul(v0, i2);
    const float v2 = kiln::Div(v1, 0x1.8p+1f);
    const float v3 = kiln::Round<kiln::Float16>(v2);
    const float v4 = kiln::LeakyRelu(v3, 0x1.99999ap-4f);
    kiln::Store(t.output1, at.i, v3);
    kiln::Store(t.output0, at.i, v4);
  }
};

extern "C" __global__ void __launch_bounds__(256)
kiln_pointwise(const kiln::Float16* __restrict__ i0,
               const kiln::BFloat16* __restrict__ i1,
               const float* __restrict__ i2,
               kiln::Float16* __restrict__ output1,
               kiln::Float16* __restrict__ output0) {
  kiln::AwaitPrevious();
  kiln::Pointwise<Spec>({i0, i1, i2, output1, output0});
}
