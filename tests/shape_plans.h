#ifndef KILN_TESTS_SHAPE_PLANS_H_
#define KILN_TESTS_SHAPE_PLANS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "jit/plan/data_type.h"

namespace kiln {

// A plan that tests name by what it computes:
// "conv2d_f32_n2_c8_h16_w16_oc64_k3__group_norm16__tanh".
struct NamedPlan {
  std::string name;  // [a-z0-9_]
  std::string text;  // of ParsePlanText; valid
};

// Extents of an image batch, N x C x H x W.
struct ImageShape {
  int64_t n, c, h, w;
};

// Weight and attributes of a convolution or transposed convolution of square
// kernels, other than the input's extents.
struct ConvShape {
  int64_t out_channels;
  int64_t kernel = 3;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
  int64_t groups = 1;
  int64_t output_padding = 0;  // of the transposed one
  bool bias = true;
};

NamedPlan Conv2dPlan(DataType type, ImageShape input, ConvShape conv);
NamedPlan ConvTranspose2dPlan(DataType type, ImageShape input, ConvShape conv);

// With weight and bias, which a caller may leave out.
NamedPlan GroupNormPlan(DataType type, ImageShape input, int64_t num_groups,
                        bool affine = true);
NamedPlan BatchNormPlan(DataType type, ImageShape input, bool affine = true);

// `op` is max_pool2d or avg_pool2d; `arguments` are those of plan text:
// "kernel_size=3, stride=2"; `suffix` says them in the name: "k3_s2".
NamedPlan PoolPlan(DataType type, ImageShape input, std::string_view op,
                   std::string_view arguments, std::string_view suffix);

// y = `call`, an expression over the one input x of extents `dims`, such as
// "softmax(x, dim=1)"; `name` is the op's part of the name: "softmax_dim1".
NamedPlan UnaryPlan(DataType type, const std::vector<int64_t>& dims,
                    std::string_view call, std::string_view name);

// y = op(x, other) over tensors of these extents.
NamedPlan BinaryPlan(DataType type, std::string_view op,
                     const std::vector<int64_t>& dims,
                     const std::vector<int64_t>& other);

// The four chains of docs/performance.md at any size.
// group_norm.
NamedPlan Chain1Plan(DataType type, ImageShape input, int64_t num_groups);
// conv2d(k3), group_norm, tanh, hardswish, + conv2d's result, logsumexp
// over channels.
NamedPlan Chain2Plan(DataType type, ImageShape input, int64_t out_channels,
                     int64_t num_groups);
// conv2d(k3), group_norm, * scale[C,1,1], max_pool2d(4), clamp(0, 1).
NamedPlan Chain3Plan(DataType type, ImageShape input, int64_t out_channels,
                     int64_t num_groups);
// conv_transpose2d(k3), gelu, group_norm.
NamedPlan Chain4Plan(DataType type, ImageShape input, int64_t out_channels,
                     int64_t num_groups);

}  // namespace kiln

#endif  // KILN_TESTS_SHAPE_PLANS_H_
