#ifndef KILN_TESTS_JIT_COMPILE_HOST_PLANS_H_
#define KILN_TESTS_JIT_COMPILE_HOST_PLANS_H_

namespace kiln {

// Enough elements for threads to take several.
inline constexpr const char* kLargePlans[] = {
    // Large windows: several rows of images in a block; and rows that blocks
    // cut, with edges.
    R"(
input x: f16[2,5,20,22]
t = silu(x)
p = max_pool2d(t, kernel_size=9, stride=1, padding=4)
z = relu(p)
output z
)",
    R"(
input x: f32[1,2,11,4200]
z = avg_pool2d(x, kernel_size=[7,9], stride=[3,2], padding=[2,4], ceil_mode=true, count_include_pad=false)
output z
)",
    R"(
input x: f32[8,32,24,24]
input y: f32[8,1,24,24]
param c: f32[32,1,1]
param w: f32[24]
a = mul(x, c)
b = add(a, y)
z = mul(b, w)
output z: f16
output b
)",
    R"(
input x: f16[4,37,31,31]
input y: bf16[4,37,31,31]
param c: f16[37,1,1]
a = add(x, y)
z = mul(a, c)
output z: bf16
)",
    R"(
input x: bf16[137,1024]
param b: bf16[1024]
a = add(x, b)
z = relu(a)
output z: bf16
)",
    R"(
input x: f32[3,7,131,64]
a = sigmoid(x)
z = mean(a, dim=[1,3])
output z
)",
    R"(
input x: f16[1,300000]
z = sum(x)
output z: f32
)",
    R"(
input x: f32[2,12,29,32]
param w: f32[12,1,3,3]
param b: f32[12]
c = conv2d(x, w, b, padding=1, groups=12)
z = add(c, x)
output z
)",
    R"(
input x: f16[2,9,35,40]
param w: f32[18,1,3,5]
c = conv2d(x, w, stride=[1,2], padding=[0,2], groups=9)
output c: f32
)",
    R"(
input x: f32[2,3,24,27]
param w: f32[3,1,7,7]
c = conv2d(x, w, padding=4, groups=3)
z = relu(c)
output z
)",
    R"(
input x: f32[1,4,24,28]
param w: f32[4,1,3,3]
c = conv2d(x, w, padding=2, dilation=2, groups=4)
output c
)",
    R"(
input x: f32[4,33,64,64]
input y: f32[4,33,32,32]
a = relu(x)
b = max_pool2d(a, kernel_size=3, stride=2, padding=1)
z = add(b, y)
output z
)",
    R"(
input x: f16[2,65,64,32]
a = sigmoid(x)
b = avg_pool2d(a, kernel_size=3, stride=1, padding=1, count_include_pad=false)
output b: f32
)",
    R"(
input x: f32[2,70,61,33]
b = avg_pool2d(x, kernel_size=2, stride=2, ceil_mode=true)
c = max_pool2d(x, kernel_size=[2,3], stride=1, dilation=2)
output b
output c
)",
    R"(
input x: f32[1037,132]
z = logsumexp(x, dim=0)
output z
)",
};

// Rows in registers, blocks and strips, kept as they are or as they were read,
// powers in the place of what they are of, segments of rows.
inline constexpr const char* kRowPlans[] = {
    R"(
input x: f32[37,772]
param w: f32[772]
n = group_norm(x, w, num_groups=1)
y = add(n, x)
output y: f16
output n
)",
    R"(
input x: bf16[19,70]
a = mul(x, 3.0)
y = softmax(a, dim=1)
output y: f32
)",
    R"(
input x: bf16[3,10,17,16]
param w: f32[10]
a = relu(x)
n = group_norm(a, w, num_groups=2)
y = silu(n)
output y: bf16
)",
    R"(
input x: f32[2,6,23,29]
a = mish(x)
n = group_norm(a, num_groups=2)
y = add(n, a)
output y
output a
)",
    R"(
input x: f32[3,1600]
y = softmax(x, dim=1)
z = mul(y, x)
output z
)",
    R"(
input x: f32[5,2100]
param c: f32[2100]
a = mul(x, c)
y = softmax(a, dim=1)
output y
)",
    R"(
input x: f32[3,37,11,12]
y = softmax(x, dim=1)
output y
)",
    R"(
input x: f16[2,70,5,9]
param c: f32[70,1,1]
a = mul(x, c)
y = softmax(a, dim=1)
z = sub(y, a)
output z: f16
)",
    R"(
input x: f32[300,12]
input r: f32[300,12]
a = add(x, r)
y = softmax(a, dim=0)
output y
)",
    R"(
input x: f32[2,12,14,14]
param w: f32[12]
n = group_norm(x, w, num_groups=3)
s = silu(n)
m = mean(s, dim=[2,3])
y = tanh(m)
output y
output m: f16
)",
    R"(
input x: bf16[2,40,7,7]
n = group_norm(x, num_groups=2)
m = amax(n, dim=[2,3], keepdim=true)
output m
)",
    R"(
input x: bf16[3,8,9,32]
input r: f32[3,8,9,32]
a = add(x, r)
n = group_norm(a, num_groups=1)
m = logsumexp(n, dim=3)
output m
)",
    R"(
input x: f32[4,3,1536]
y = softmax(x, dim=2)
z = mul(y, x)
m = sum(z, dim=2)
output m
)",
};

// Normalisations of rows that a team of four blocks takes: rows in turn and by
// one, several operands, 16-bit types, and a last block with less than others.
inline constexpr const char* kTeamPlans[] = {
    R"(
input x: f32[5,4,60,120]
param w: f32[4]
param b: f32[4]
n = group_norm(x, w, b, num_groups=2)
y = relu(n)
output y
)",
    R"(
input x: f32[3,2,100,120]
input z: f32[3,2,100,120]
a = add(x, z)
n = group_norm(a, num_groups=1)
y = mul(n, z)
output y
output a
)",
    R"(
input x: f16[2,4,100,160]
m = mish(x)
n = group_norm(m, num_groups=1)
y = silu(n)
output y: f16
)",
    R"(
input x: f32[3,3,51,60]
y = group_norm(x, num_groups=1)
output y: bf16
)",
    R"(
input x: f32[3,40004]
y = softmax(x, dim=1)
z = mul(y, 1000.0)
output z
)",
};

}  // namespace kiln

#endif  // KILN_TESTS_JIT_COMPILE_HOST_PLANS_H_
