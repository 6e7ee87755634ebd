#include "tests/shape_plans.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {
namespace {

std::string ImageName(const ImageShape& s) {
  return fmt::format("n{}_c{}_h{}_w{}", s.n, s.c, s.h, s.w);
}

std::string Image(DataType type, const ImageShape& s) {
  return fmt::format("{}[{},{},{},{}]", DataTypeName(type), s.n, s.c, s.h, s.w);
}

std::string DimsName(const std::vector<int64_t>& dims) {
  return dims.empty() ? "scalar" : fmt::format("{}", fmt::join(dims, "x"));
}

std::string Tensor(DataType type, const std::vector<int64_t>& dims) {
  return fmt::format("{}[{}]", DataTypeName(type), fmt::join(dims, ","));
}

// "oc64_k3_s2": what differs from the defaults.
std::string ConvName(const ConvShape& conv) {
  std::string name = fmt::format("oc{}_k{}", conv.out_channels, conv.kernel);
  if (conv.stride != 1) name += fmt::format("_s{}", conv.stride);
  if (conv.padding != 0) name += fmt::format("_p{}", conv.padding);
  if (conv.dilation != 1) name += fmt::format("_d{}", conv.dilation);
  if (conv.groups != 1) name += fmt::format("_g{}", conv.groups);
  if (conv.output_padding != 0) {
    name += fmt::format("_op{}", conv.output_padding);
  }
  return conv.bias ? name : name + "_nobias";
}

// "x, w, b, stride=2": the arguments of plan text.
std::string ConvArguments(const ConvShape& conv) {
  std::string text = conv.bias ? "x, w, b" : "x, w";
  if (conv.stride != 1) text += fmt::format(", stride={}", conv.stride);
  if (conv.padding != 0) text += fmt::format(", padding={}", conv.padding);
  if (conv.dilation != 1) text += fmt::format(", dilation={}", conv.dilation);
  if (conv.groups != 1) text += fmt::format(", groups={}", conv.groups);
  if (conv.output_padding != 0) {
    text += fmt::format(", output_padding={}", conv.output_padding);
  }
  return text;
}

// The inputs of a convolution: x, w [`weight`, k, k] and b.
std::string ConvInputs(DataType type, const ImageShape& input,
                       const ConvShape& conv, int64_t weight0,
                       int64_t weight1) {
  const std::string weight =
      Tensor(type, {weight0, weight1, conv.kernel, conv.kernel});
  std::string text =
      fmt::format("input x: {}\nparam w: {}\n", Image(type, input), weight);
  if (conv.bias) {
    text += fmt::format("param b: {}\n", Tensor(type, {conv.out_channels}));
  }
  return text;
}

std::string Conv2dInputs(DataType type, const ImageShape& input,
                         const ConvShape& conv) {
  return ConvInputs(type, input, conv, conv.out_channels,
                    input.c / conv.groups);
}

std::string ConvTranspose2dInputs(DataType type, const ImageShape& input,
                                  const ConvShape& conv) {
  return ConvInputs(type, input, conv, input.c,
                    conv.out_channels / conv.groups);
}

// gamma and beta of a norm.
std::string AffineInputs(DataType type, int64_t channels) {
  const std::string vector = Tensor(type, {channels});
  return fmt::format("param gamma: {0}\nparam beta: {0}\n", vector);
}

}  // namespace

NamedPlan Conv2dPlan(DataType type, ImageShape input, ConvShape conv) {
  return {fmt::format("conv2d_{}_{}_{}", DataTypeName(type), ImageName(input),
                      ConvName(conv)),
          fmt::format("{}y = conv2d({})\noutput y\n",
                      Conv2dInputs(type, input, conv), ConvArguments(conv))};
}

NamedPlan ConvTranspose2dPlan(DataType type, ImageShape input, ConvShape conv) {
  return {fmt::format("conv_transpose2d_{}_{}_{}", DataTypeName(type),
                      ImageName(input), ConvName(conv)),
          fmt::format("{}y = conv_transpose2d({})\noutput y\n",
                      ConvTranspose2dInputs(type, input, conv),
                      ConvArguments(conv))};
}

NamedPlan GroupNormPlan(DataType type, ImageShape input, int64_t num_groups,
                        bool affine) {
  return {
      fmt::format("group_norm{}_{}_{}{}", num_groups, DataTypeName(type),
                  ImageName(input), affine ? "" : "_noaffine"),
      fmt::format("input x: {}\n{}y = group_norm(x{}, num_groups={})\n"
                  "output y\n",
                  Image(type, input), affine ? AffineInputs(type, input.c) : "",
                  affine ? ", gamma, beta" : "", num_groups)};
}

NamedPlan BatchNormPlan(DataType type, ImageShape input, bool affine) {
  const std::string vector = Tensor(type, {input.c});
  return {fmt::format("batch_norm_{}_{}{}", DataTypeName(type),
                      ImageName(input), affine ? "" : "_noaffine"),
          fmt::format("input x: {0}\nparam mean: {1}\nparam var: {1}\n{2}"
                      "y = batch_norm(x, mean, var{3})\noutput y\n",
                      Image(type, input), vector,
                      affine ? AffineInputs(type, input.c) : "",
                      affine ? ", gamma, beta" : "")};
}

NamedPlan PoolPlan(DataType type, ImageShape input, std::string_view op,
                   std::string_view arguments, std::string_view suffix) {
  return {fmt::format("{}_{}_{}_{}", op, DataTypeName(type), ImageName(input),
                      suffix),
          fmt::format("input x: {}\ny = {}(x, {})\noutput y\n",
                      Image(type, input), op, arguments)};
}

NamedPlan UnaryPlan(DataType type, const std::vector<int64_t>& dims,
                    std::string_view call, std::string_view name) {
  return {
      fmt::format("{}_{}_{}", name, DataTypeName(type), DimsName(dims)),
      fmt::format("input x: {}\ny = {}\noutput y\n", Tensor(type, dims), call)};
}

NamedPlan BinaryPlan(DataType type, std::string_view op,
                     const std::vector<int64_t>& dims,
                     const std::vector<int64_t>& other) {
  return {fmt::format("{}_{}_{}_with_{}", op, DataTypeName(type),
                      DimsName(dims), DimsName(other)),
          fmt::format("input x: {}\ninput other: {}\ny = {}(x, other)\n"
                      "output y\n",
                      Tensor(type, dims), Tensor(type, other), op)};
}

NamedPlan Chain1Plan(DataType type, ImageShape input, int64_t num_groups) {
  NamedPlan plan = GroupNormPlan(type, input, num_groups);
  plan.name = "chain1__" + plan.name;
  return plan;
}

NamedPlan Chain2Plan(DataType type, ImageShape input, int64_t out_channels,
                     int64_t num_groups) {
  const ConvShape conv{out_channels};
  return {
      fmt::format("chain2__{}__group_norm{}__tanh__hardswish__add__logsumexp",
                  Conv2dPlan(type, input, conv).name, num_groups),
      fmt::format("{}{}y = conv2d(x, w, b)\n"
                  "z = group_norm(y, gamma, beta, num_groups={})\n"
                  "t = tanh(z)\nh = hardswish(t)\nr = add(y, h)\n"
                  "s = logsumexp(r, dim=1, keepdim=true)\noutput s\n",
                  Conv2dInputs(type, input, conv),
                  AffineInputs(type, out_channels), num_groups)};
}

NamedPlan Chain3Plan(DataType type, ImageShape input, int64_t out_channels,
                     int64_t num_groups) {
  const ConvShape conv{out_channels};
  return {fmt::format("chain3__{}__group_norm{}__mul__max_pool2d4__clamp",
                      Conv2dPlan(type, input, conv).name, num_groups),
          fmt::format("{}{}param scale: {}\ny = conv2d(x, w, b)\n"
                      "z = group_norm(y, gamma, beta, num_groups={})\n"
                      "m = mul(z, scale)\np = max_pool2d(m, kernel_size=4)\n"
                      "c = clamp(p, min=0, max=1)\noutput c\n",
                      Conv2dInputs(type, input, conv),
                      AffineInputs(type, out_channels),
                      Tensor(type, {out_channels, 1, 1}), num_groups)};
}

NamedPlan Chain4Plan(DataType type, ImageShape input, int64_t out_channels,
                     int64_t num_groups) {
  const ConvShape conv{out_channels};
  return {fmt::format("chain4__{}__gelu__group_norm{}",
                      ConvTranspose2dPlan(type, input, conv).name, num_groups),
          fmt::format("{}{}y = conv_transpose2d(x, w, b)\ng = gelu(y)\n"
                      "z = group_norm(g, gamma, beta, num_groups={})\n"
                      "output z\n",
                      ConvTranspose2dInputs(type, input, conv),
                      AffineInputs(type, out_channels), num_groups)};
}

}  // namespace kiln
