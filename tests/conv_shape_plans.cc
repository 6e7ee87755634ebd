// Longer than 400 lines because plans of all tails stand in one list.
#include "tests/conv_shape_plans.h"

#include <fmt/format.h>

#include <initializer_list>
#include <string_view>
#include <utility>

namespace kiln {
namespace {

using Plans = std::vector<NamedPlan>;

constexpr DataType kF32 = DataType::kF32;
constexpr DataType kF16 = DataType::kF16;
constexpr DataType kBF16 = DataType::kBF16;

// Reductions over the images of a convolution, which its kernel takes along
// (kernel_sources/conv_images.cuh): with a bias and without, with padded
// channels, one tile and several, and a result that goes on.
Plans ReducedImages() {
  Plans plans;
  constexpr std::string_view kReduced[] = {"sum", "mean", "amax", "amin"};
  for (const std::string_view op : kReduced) {
    for (const int64_t size : {7, 67}) {
      plans.push_back(
          {fmt::format("reduced_images__{}__{}", op, size),
           fmt::format("input x: f32[3,24,{0},{0}]\nparam w: f32[40,24,3,3]\n"
                       "param b: f32[40]\nc = conv2d(x, w, b, padding=1)\n"
                       "t = silu(c)\ny = {1}(t, dim=[2,3])\noutput y\n",
                       size, op)});
    }
    plans.push_back(
        {fmt::format("reduced_images__{}__strided_f16", op),
         fmt::format("input x: f16[2,70,33,29]\nparam w: f16[130,70,2,2]\n"
                     "c = conv2d(x, w, stride=2)\n"
                     "m = {}(c, dim=[2,3], keepdim=true)\n"
                     "y = sigmoid(m)\noutput y\n",
                     op)});
  }
  plans.push_back({"reduced_images__squeeze_and_excite",
                   "input x: f32[8,32,28,28]\nparam w: f32[48,32,3,3]\n"
                   "c = conv2d(x, w, padding=1)\n"
                   "m = mean(c, dim=[2,3], keepdim=true)\ns = sigmoid(m)\n"
                   "y = mul(c, s)\noutput y\n"});
  plans.push_back({"reduced_images__transposed_bf16",
                   "input x: bf16[2,24,19,21]\nparam w: bf16[24,40,4,4]\n"
                   "c = conv_transpose2d(x, w, stride=2, padding=1)\n"
                   "y = amax(c, dim=[2,3])\noutput y\n"});
  plans.push_back({"reduced_images__many_strips",
                   "input x: f32[1,8,600,70]\nparam w: f32[16,8,3,3]\n"
                   "c = conv2d(x, w)\ny = sum(c, dim=[2,3])\noutput y\n"});
  return plans;
}

// 1 x 1 convolutions, which take 64 or 128 channels at once: also where these
// do not divide the input's.
Plans WideChunks() {
  Plans plans;
  for (const DataType type : {kF32, kBF16}) {
    for (const int64_t channels : {72, 200, 512}) {
      plans.push_back(
          {fmt::format("wide_chunks__{}__{}", DataTypeName(type), channels),
           fmt::format("input x: {0}[4,{1},14,14]\nparam w: {0}[512,{1},1,1]\n"
                       "c = conv2d(x, w)\ny = relu(c)\noutput y\n",
                       DataTypeName(type), channels)});
    }
  }
  return plans;
}

// Images that fit in a warpgroup's rows, more of them than multiprocessors: a
// block computes several (kernel_sources/conv_tile.cuh).
NamedPlan SmallImages(std::string_view name, DataType type,
                      std::string_view input, std::string_view filter,
                      std::string_view arguments, std::string_view rest,
                      std::string_view more = "") {
  return {
      fmt::format("small_images__{}", name),
      fmt::format("input x: {0}[{1}]\n{2}param w: {0}[{3}]\n"
                  "c = conv2d(x, w{4})\n{5}output y\n",
                  DataTypeName(type), input, more, filter, arguments, rest)};
}

Plans SmallImages() {
  const std::string_view same = ", padding=1";
  return {
      SmallImages("norm", kF32, "256,128,7,7", "256,128,3,3", same,
                  "n = group_norm(c, num_groups=8)\ny = relu(n)\n"),
      SmallImages("wide_groups", kF32, "256,64,5,6", "256,64,3,3", same,
                  "y = group_norm(c, num_groups=1)\n"),
      SmallImages("relu", kF32, "528,64,7,7", "128,64,3,3", same,
                  "y = relu(c)\n"),
      SmallImages("f16", kF16, "396,128,7,7", "128,128,3,3", same,
                  "n = group_norm(c, num_groups=8)\ny = silu(n)\n"),
      SmallImages("bf16", kBF16, "528,72,7,7", "200,72,3,3", same,
                  "y = gelu(c)\n"),
      SmallImages("stride", kF32, "528,40,13,13", "72,40,3,3",
                  ", stride=2, padding=1", "y = group_norm(c, num_groups=9)\n"),
      SmallImages("groups", kF32, "264,128,7,7", "256,64,3,3",
                  ", padding=1, groups=2", "y = group_norm(c, num_groups=8)\n"),
      SmallImages("residual", kF32, "528,64,7,7", "128,64,3,3", same,
                  "a = add(c, z)\n"
                  "n = group_norm(a, num_groups=8)\ny = relu(n)\n",
                  "input z: f32[528,128,7,7]\n"),
      SmallImages("excited", kF32, "528,64,7,7", "128,64,3,3", same,
                  "m = mul(c, s)\ny = relu(m)\n",
                  "input s: f32[528,128,1,1]\n"),
      SmallImages("k5", kF32, "264,64,6,6", "96,64,5,5", ", padding=2",
                  "y = group_norm(c, num_groups=6)\n"),
      SmallImages("logsumexp", kF32, "528,32,7,7", "64,32,3,3", same,
                  "n = group_norm(c, num_groups=8)\nt = tanh(n)\n"
                  "a = add(t, c)\ny = logsumexp(a, dim=1)\n"),
  };
}

NamedPlan Channels(std::string_view name, std::string_view plan) {
  return {fmt::format("reduction_of_channels__{}", name), std::string(plan)};
}

// Reductions over the channels of a convolution, in its kernel; of 64 from
// registers (kernel_sources/conv_channel_runs.cuh). Far from zero powers of
// differences tell whether both are rounded alike.
Plans ReductionsOfChannels() {
  const std::string conv =
      "input x: f32[66,8,14,96]\nparam w: f32[64,8,3,3]\nc = conv2d(x, w)\n";
  const std::string norm = "n = group_norm(c, num_groups=8)\n";
  return {
      Channels("far", conv + "m = mul(c, 1e10)\ny = logsumexp(m, dim=1)\n"
                             "output y\n"),
      Channels("farther", conv + "m = mul(c, 1e30)\nb = add(m, c)\n"
                                 "y = logsumexp(b, dim=1)\noutput y\n"),
      Channels("norm", conv + norm +
                           "t = tanh(n)\na = add(t, c)\n"
                           "y = logsumexp(a, dim=1)\noutput y\n"),
      Channels("norm_tf32", "grade tf32\n" + conv + norm +
                                "s = silu(n)\ny = mean(s, dim=1)\noutput y\n"),
      Channels("amin_f16",
               "input x: f16[66,24,9,24]\nparam w: f16[64,24,3,3]\n"
               "c = conv2d(x, w, padding=1)\ny = amin(c, dim=1)\noutput y\n"),
  };
}

NamedPlan Softmax(std::string_view name, std::string_view plan) {
  return {fmt::format("softmax_of_channels__{}", name), std::string(plan)};
}

// Softmax over the channels of a convolution, in its kernel
// (kernel_sources/conv_softmax.cuh).
Plans SoftmaxOfChannels() {
  return {
      Softmax("segmentation",
              "input x: f32[3,64,57,61]\nparam w: f32[21,64,1,1]\n"
              "param b: f32[21]\nc = conv2d(x, w, b)\n"
              "y = softmax(c, dim=1)\noutput y\n"),
      Softmax("wide_f16",
              "input x: f16[4,72,24,24]\nparam w: f16[150,72,3,3]\n"
              "c = conv2d(x, w, padding=1)\ny = softmax(c, dim=1)\n"
              "output y\n"),
      Softmax("bf16_strided",
              "input x: bf16[4,24,33,41]\nparam w: bf16[19,24,3,3]\n"
              "c = conv2d(x, w, stride=2, padding=1)\nr = silu(c)\n"
              "y = softmax(r, dim=1)\noutput y\noutput c\n"),
      Softmax("norm",
              "input x: f32[5,8,37,66]\nparam w: f32[64,8,3,3]\n"
              "param b: f32[64]\nparam s: f32[64,1,1]\n"
              "c = conv2d(x, w, b)\nn = group_norm(c, num_groups=16)\n"
              "t = tanh(n)\nh = hardswish(t)\na = add(h, c)\n"
              "m = softmax(a, dim=1)\ny = mul(m, s)\noutput y\n"),
      Softmax("transposed",
              "input x: f32[3,24,19,21]\nparam w: f32[24,40,4,4]\n"
              "input z: f32[3,40,38,42]\n"
              "c = conv_transpose2d(x, w, stride=2, padding=1)\n"
              "a = add(c, z)\nm = softmax(a, dim=1)\ny = add(m, z)\n"
              "output y\n"),
      Softmax("many_channels",
              "input x: f32[2,48,28,28]\nparam w: f32[256,48,1,1]\n"
              "c = conv2d(x, w)\ny = softmax(c, dim=1)\noutput y\n"),
  };
}

// Results whose rows are no whole sectors, which go through shared memory
// (kernel_sources/conv_pixel_stage.cuh).
Plans OddWidths() {
  Plans plans;
  for (const DataType type : {kF32, kF16}) {
    for (const int64_t channels : {24, 40, 72}) {
      plans.push_back(
          {fmt::format("odd_widths__{}__{}", DataTypeName(type), channels),
           fmt::format("input x: {0}[3,16,33,57]\nparam w: {0}[{1},16,3,3]\n"
                       "param b: {0}[{1}]\nc = conv2d(x, w, b, padding=1)\n"
                       "y = relu(c)\noutput y\n",
                       DataTypeName(type), channels)});
    }
  }
  return plans;
}

// Transposed convolutions whose filter the stride does not divide: some phases
// of the output have a tap less than others, or none.
Plans UnevenPhases() {
  Plans plans;
  for (const DataType type : {kF32, kBF16}) {
    for (const auto& [kernel, stride] :
         {std::pair(3, 2), {5, 2}, {5, 3}, {4, 3}, {2, 3}}) {
      plans.push_back(
          {fmt::format("uneven_phases__{}__k{}_s{}", DataTypeName(type), kernel,
                       stride),
           fmt::format("input x: {0}[2,40,15,17]\nparam w: {0}[40,72,{1},{1}]\n"
                       "param b: {0}[72]\nc = conv_transpose2d(x, w, b, "
                       "stride={2}, padding=1, output_padding=1)\n"
                       "n = group_norm(c, num_groups=9)\ny = relu(n)\n"
                       "output y\n",
                       DataTypeName(type), kernel, stride)});
    }
  }
  return plans;
}

// Transposed convolutions of which tiles have both phases of the columns.
Plans MergedPhases() {
  Plans plans;
  for (const DataType type : {kF32, kBF16}) {
    for (const int64_t kernel : {2, 3, 4}) {
      const std::string conv = fmt::format(
          "input x: {0}[8,48,31,45]\nparam w: {0}[48,72,{1},{1}]\n"
          "param b: {0}[72]\nc = conv_transpose2d(x, w, b, "
          "stride=2, padding={2})\n",
          DataTypeName(type), kernel, kernel > 2 ? 1 : 0);
      const std::string name =
          fmt::format("merged_phases__{}__k{}", DataTypeName(type), kernel);
      plans.push_back({name, conv + "y = silu(c)\noutput y\n"});
      plans.push_back({name + "_norm",
                       conv + "g = gelu(c)\ny = group_norm(g, num_groups=9)\n"
                              "output y\n"});
    }
  }
  plans.push_back({"merged_phases__few_channels",
                   "input x: f32[4,64,33,47]\nparam w: f32[64,3,4,4]\n"
                   "c = conv_transpose2d(x, w, stride=2, padding=1)\n"
                   "y = tanh(c)\noutput y\n"});
  plans.push_back({"merged_phases__part_of_a_chunk",
                   "input x: f32[2,192,69,16]\n"
                   "param w: f32[192,128,2,2]\n"
                   "c = conv_transpose2d(x, w, stride=2)\ny = relu(c)\n"
                   "output y\n"});
  plans.push_back({"merged_phases__not_pooled",
                   "input x: f32[2,32,16,13]\nparam w: f32[32,64,3,3]\n"
                   "c = conv_transpose2d(x, w, stride=[1,2], padding=1)\n"
                   "r = relu(c)\ny = max_pool2d(r, kernel_size=[2,1])\n"
                   "output y\noutput r\n"});
  return plans;
}

// Poolings of a convolution's elements whose windows overlap or reach past the
// edges, which tiles then do, too (jit/compile/conv_windows.h).
Plans OverlappingWindows() {
  Plans plans;
  for (const DataType type : {kF32, kF16}) {
    for (const auto& [number, pooling] :
         {std::pair{"3_2", "max_pool2d(r, kernel_size=3, stride=2, padding=1)"},
          {"ceil", "max_pool2d(r, kernel_size=3, stride=2, ceil_mode=true)"},
          {"2_1", "avg_pool2d(r, kernel_size=2, stride=1)"},
          {"uneven",
           "max_pool2d(r, kernel_size=[2,5], stride=[2,3], "
           "padding=[1,2])"}}) {
      for (const int64_t channels : {3, 16}) {
        plans.push_back(
            {fmt::format("overlapping_windows__{}__{}__{}", DataTypeName(type),
                         number, channels),
             fmt::format("input x: {0}[16,{1},101,118]\n"
                         "param w: {0}[48,{1},3,3]\nparam b: {0}[48]\n"
                         "c = conv2d(x, w, b, stride={2}, padding=1)\n"
                         "r = relu(c)\ny = {3}\noutput y\n",
                         DataTypeName(type), channels, channels == 3 ? 2 : 1,
                         pooling)});
      }
    }
  }
  plans.push_back({"overlapping_windows__long_ops",
                   "input x: f32[8,12,90,61]\nparam w: f32[72,12,3,3]\n"
                   "c = conv2d(x, w)\nm = mish(c)\nt = tanh(m)\n"
                   "y = avg_pool2d(t, kernel_size=3, stride=2, padding=1)\n"
                   "output y\n"});
  for (const char* const type : {"f32", "bf16"}) {
    plans.push_back(
        {fmt::format("overlapping_windows__norm__{}", type),
         fmt::format("input x: {0}[8,12,77,90]\nparam w: {0}[64,12,3,3]\n"
                     "param g: {0}[64]\nparam b: {0}[64]\n"
                     "c = conv2d(x, w)\nn = group_norm(c, g, b, num_groups=8)\n"
                     "r = relu(n)\n"
                     "y = max_pool2d(r, kernel_size=3, stride=2, padding=1)\n"
                     "output y\n",
                     type)});
  }
  plans.push_back({"overlapping_windows__residual",
                   "input x: f32[8,12,64,64]\nparam w: f32[64,12,3,3]\n"
                   "input z: f32[8,64,64,64]\n"
                   "c = conv2d(x, w, padding=1)\ns = add(c, z)\n"
                   "y = max_pool2d(s, kernel_size=3, stride=2, padding=1)\n"
                   "output y\n"});
  return plans;
}

// Filters of their own for each channel, in rows of every length of a vector.
Plans Depthwise() {
  Plans plans;
  for (const DataType type : {kF32, kBF16}) {
    for (const auto& [height, width] :
         {std::pair{3, 3}, {5, 5}, {7, 7}, {9, 9}, {1, 21}, {31, 31}}) {
      for (const int64_t side : {28, 14, 7}) {
        plans.push_back(
            {fmt::format("depthwise__{}__{}x{}__{}", DataTypeName(type), height,
                         width, side),
             fmt::format("input x: {0}[8,96,{1},{1}]\n"
                         "param w: {0}[96,1,{2},{3}]\nparam b: {0}[96]\n"
                         "c = conv2d(x, w, b, padding=[{4},{5}], groups=96)\n"
                         "y = hardswish(c)\noutput y\n",
                         DataTypeName(type), side, height, width, height / 2,
                         width / 2)});
      }
    }
  }
  plans.push_back({"depthwise__several_of_a_channel",
                   "input x: f32[8,48,30,34]\nparam w: f32[144,1,7,5]\n"
                   "c = conv2d(x, w, stride=[1,2], padding=[3,2], groups=48)\n"
                   "y = group_norm(c, num_groups=8)\noutput y\n"});
  // Of what ptxas spilled once, and of a reach that took it half a minute.
  plans.push_back({"depthwise__refused",
                   "input x: f16[32,96,24,24]\nparam w: f16[96,1,13,13]\n"
                   "param b: f16[96]\nc = conv2d(x, w, b, stride=[1,3], "
                   "padding=6, groups=96)\ny = gelu(c)\noutput y\n"});
  plans.push_back({"depthwise__far_down",
                   "input x: f32[1,4,1010,8]\nparam w: f32[4,1,3,3]\n"
                   "c = conv2d(x, w, padding=[500,1], dilation=[500,1], "
                   "groups=4)\ny = relu(c)\noutput y\n"});
  plans.push_back({"depthwise__patches",
                   "input x: f32[4,8,72,66]\nparam w: f32[40,1,7,7]\n"
                   "c = conv2d(x, w, stride=7, groups=8)\n"
                   "y = group_norm(c, num_groups=8)\noutput y\n"});
  plans.push_back({"depthwise__dilated",
                   "input x: f16[8,96,32,36]\nparam w: f16[96,1,3,3]\n"
                   "c = conv2d(x, w, padding=18, dilation=18, groups=96)\n"
                   "y = add(c, x)\noutput y\n"});
  return plans;
}

// Few results of one tap, of images of every kind of size.
Plans FewResults() {
  Plans plans;
  for (const DataType type : {kF32, kF16}) {
    for (const int64_t results : {1, 3, 4, 8, 12}) {
      for (const auto& [channels, side] :
           {std::pair{3, 97}, {64, 48}, {100, 31}, {480, 22}}) {
        plans.push_back(
            {fmt::format("few_results__{}__{}_of_{}__{}", DataTypeName(type),
                         results, channels, side),
             fmt::format("input x: {0}[6,{1},{2},{2}]\n"
                         "param w: {0}[{3},{1},1,1]\nparam b: {0}[{3}]\n"
                         "c = conv2d(x, w, b)\ny = sigmoid(c)\noutput y\n",
                         DataTypeName(type), channels, side, results)});
      }
    }
  }
  plans.push_back({"few_results__norm",
                   "input x: f32[6,96,50,41]\nparam w: f32[6,96,1,1]\n"
                   "c = conv2d(x, w)\nn = group_norm(c, num_groups=3)\n"
                   "y = silu(n)\noutput y\n"});
  plans.push_back({"few_results__softmax",
                   "input x: f32[6,128,50,42]\nparam w: f32[8,128,1,1]\n"
                   "c = conv2d(x, w)\ny = softmax(c, dim=1)\noutput y\n"});
  plans.push_back({"few_results__residual",
                   "input x: bf16[6,4,50,42]\nparam w: bf16[4,4,1,1]\n"
                   "c = conv2d(x, w)\ns = add(c, x)\ny = gelu(s)\n"
                   "output y\n"});
  return plans;
}

// Filters that reach far, of which rows of the image make phases.
Plans WideDilations() {
  Plans plans;
  for (const DataType type : {kF32, kF16}) {
    for (const int64_t dilation : {3, 6, 12, 24}) {
      plans.push_back(
          {fmt::format("wide_dilations__{}__{}", DataTypeName(type), dilation),
           fmt::format("input x: {0}[2,48,33,35]\nparam w: {0}[64,48,3,3]\n"
                       "param b: {0}[64]\nc = conv2d(x, w, b, padding={1}, "
                       "dilation={1})\nn = group_norm(c, num_groups=8)\n"
                       "y = relu(n)\noutput y\n",
                       DataTypeName(type), dilation)});
    }
  }
  return plans;
}

// Filters that step by their own size, as the first of a vision transformer.
Plans Patches() {
  Plans plans;
  for (const DataType type : {kF32, kF16}) {
    for (const int64_t size : {4, 8, 14, 16}) {
      plans.push_back(
          {fmt::format("patches__{}__{}", DataTypeName(type), size),
           fmt::format("input x: {0}[3,3,67,115]\nparam w: {0}[96,3,{1},{1}]\n"
                       "param b: {0}[96]\nc = conv2d(x, w, b, stride={1})\n"
                       "y = group_norm(c, num_groups=1)\noutput y\n",
                       DataTypeName(type), size)});
    }
  }
  return plans;
}

// Convolutions of what the plan has computed from values of 16 bits.
Plans RoundedOperands() {
  Plans plans;
  for (const DataType type : {kF16, kBF16}) {
    const std::string_view name = DataTypeName(type);
    plans.push_back(
        {fmt::format("rounded_operands__residual_{}", name),
         fmt::format("input x: {0}[2,64,28,30]\nparam w: {0}[64,64,3,3]\n"
                     "param v: {0}[64,64,3,3]\n"
                     "n = group_norm(x, num_groups=8)\ns = silu(n)\n"
                     "c = conv2d(s, w, padding=1)\n"
                     "m = group_norm(c, num_groups=8)\nt = silu(m)\n"
                     "d = conv2d(t, v, padding=1)\ny = add(d, x)\n"
                     "output y\n",
                     name)});
    plans.push_back(
        {fmt::format("rounded_operands__bottleneck_{}", name),
         fmt::format("input x: {0}[2,96,17,19]\nparam u: {0}[32,96,1,1]\n"
                     "param w: {0}[32,32,3,3]\nparam v: {0}[96,32,1,1]\n"
                     "a = conv2d(x, u)\nr = relu(a)\n"
                     "b = conv2d(r, w, padding=1)\nq = relu(b)\n"
                     "c = conv2d(q, v)\ny = add(c, x)\noutput y\noutput q\n",
                     name)});
  }
  return plans;
}

}  // namespace

std::vector<NamedPlan> LongSums() {
  struct Shape {
    const char* op;
    const char* kernel;
    int inputs, outputs, images, extent;
    const char* options;
  };
  Plans plans;
  for (const Shape& s : std::initializer_list<Shape>{
           {"conv_transpose2d", "3,3", 32, 24, 4, 16, "padding=1"},
           {"conv_transpose2d", "4,4", 32, 24, 4, 16, "padding=2"},
           {"conv_transpose2d", "4,4", 56, 12, 16, 8, "padding=1"},
           {"conv_transpose2d", "5,5", 16, 24, 4, 9, "padding=2"},
           {"conv_transpose2d", "5,5", 32, 24, 4, 16, "stride=2, padding=2"},
           {"conv_transpose2d", "7,7", 16, 24, 4, 9, "padding=3"},
           {"conv_transpose2d", "7,7", 32, 24, 4, 16, "stride=2, padding=3"},
           {"conv2d", "5,5", 32, 12, 16, 8, "padding=2"},
           {"conv2d", "7,7", 16, 24, 4, 9, "padding=3"},
           {"conv2d", "7,7", 64, 64, 2, 14, "stride=2, padding=3"},
           {"conv2d", "9,9", 16, 24, 4, 9, "padding=4"},
           {"conv2d", "1,7", 512, 64, 1, 13, "padding=[0,3]"},
           {"conv2d", "3,3", 512, 64, 1, 13, "padding=1"}}) {
    const bool is_transposed = std::string_view(s.op) == "conv_transpose2d";
    plans.push_back(
        {fmt::format("long_sums__{}__{}_channels_k{}", s.op, s.inputs,
                     std::string_view(s.kernel).substr(0, 1)) +
             (std::string_view(s.options).starts_with("stride=2") ? "_s2" : ""),
         fmt::format("input x: f32[{},{},{},{}]\nparam w: f32[{},{},{}]\n"
                     "y = {}(x, w, {})\noutput y\n",
                     s.images, s.inputs, s.extent, s.extent,
                     is_transposed ? s.inputs : s.outputs,
                     is_transposed ? s.outputs : s.inputs, s.kernel, s.op,
                     s.options)});
  }
  return plans;
}

std::vector<NamedPlan> ConvolutionTails() {
  Plans plans = ReducedImages();
  for (const Plans& more :
       {SmallImages(), WideChunks(), ReductionsOfChannels(),
        SoftmaxOfChannels(), OddWidths(), UnevenPhases(), LongSums(),
        MergedPhases(), OverlappingWindows(), Depthwise(), FewResults(),
        WideDilations(), Patches(), RoundedOperands()}) {
    plans.insert(plans.end(), more.begin(), more.end());
  }
  return plans;
}

}  // namespace kiln
