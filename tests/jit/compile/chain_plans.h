#ifndef KILN_TESTS_JIT_COMPILE_CHAIN_PLANS_H_
#define KILN_TESTS_JIT_COMPILE_CHAIN_PLANS_H_

#include <string>

namespace kiln {

// The headline chains at full size, as far as the tests of schedules need
// them: P1, P2 without hardswish, P3 without clamp, P4 of any input.
inline constexpr char kNorm[] = R"(
input x: f32[112,64,512,512]
y = group_norm(x, num_groups=8)
output y
)";

inline constexpr char kResidualChain[] = R"(
input x: f32[128,8,128,128]
param w: f32[64,8,3,3]
conv = conv2d(x, w)
norm = group_norm(conv, num_groups=16)
t = tanh(norm)
r = add(t, conv)
y = logsumexp(r, dim=1, keepdim=true)
output y
)";

inline constexpr char kPoolChain[] = R"(
input x: f32[128,8,128,128]
param w: f32[64,8,3,3]
param s: f32[64,1,1]
conv = conv2d(x, w)
norm = group_norm(conv, num_groups=16)
scaled = mul(norm, s)
y = max_pool2d(scaled, kernel_size=4)
output y
)";

inline std::string TransposedChain(
    const std::string& input = "[128,64,256,256]") {
  return "input x: f32" + input + R"(
param w: f32[64,64,3,3]
c = conv_transpose2d(x, w)
g = gelu(c)
y = group_norm(g, num_groups=8)
output y
)";
}

}  // namespace kiln

#endif  // KILN_TESTS_JIT_COMPILE_CHAIN_PLANS_H_
