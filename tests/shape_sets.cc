// Longer than 400 lines because all sets of plans are put together here.
#include "tests/shape_sets.h"

#include <fmt/format.h>

#include <cstdlib>

#include "tests/conv_shape_plans.h"
#include "tests/row_shape_plans.h"

namespace kiln {
namespace {

using Plans = std::vector<NamedPlan>;

constexpr DataType kTypes[] = {DataType::kF32, DataType::kF16, DataType::kBF16};
constexpr DataType kF32 = DataType::kF32;
constexpr DataType kF16 = DataType::kF16;
constexpr DataType kBF16 = DataType::kBF16;

// Every op of one tensor: how plan text calls it and its part of the name.
struct UnaryCall {
  std::string_view call;
  std::string_view name;
};

constexpr UnaryCall kUnaryCalls[] = {
    {"relu(x)", "relu"},
    {"leaky_relu(x, negative_slope=0.2)", "leaky_relu"},
    {"gelu(x)", "gelu"},
    {"gelu(x, approximate=tanh)", "gelu_tanh"},
    {"tanh(x)", "tanh"},
    {"sigmoid(x)", "sigmoid"},
    {"silu(x)", "silu"},
    {"hardswish(x)", "hardswish"},
    {"hardsigmoid(x)", "hardsigmoid"},
    {"hardtanh(x, min_val=-2, max_val=0.5)", "hardtanh"},
    {"clamp(x, min=-0.5, max=0.5)", "clamp"},
    {"clamp(x, min=0)", "clamp_min"},
    {"clamp(x, max=0)", "clamp_max"},
    {"mish(x)", "mish"},
    {"softplus(x, beta=2, threshold=5)", "softplus"},
    {"elu(x, alpha=0.5)", "elu"},
    {"abs(x)", "abs"},
    {"neg(x)", "neg"},
    {"exp(x)", "exp"},
    {"sqrt(x)", "sqrt"},
    {"cast(x, dtype=f32)", "cast_f32"},
    {"cast(x, dtype=f16)", "cast_f16"},
    {"cast(x, dtype=bf16)", "cast_bf16"},
    {"add(x, 1.5)", "add_constant"},
    {"sub(1.5, x)", "rsub_constant"},
    {"div(1.5, x)", "rdiv_constant"},
    {"minimum(x, 0.25)", "minimum_constant"},
};

constexpr std::string_view kReductions[] = {"sum", "mean", "amax", "amin",
                                            "logsumexp"};
constexpr std::string_view kBinaries[] = {"add", "sub",     "mul",
                                          "div", "minimum", "maximum"};

void AddReductions(DataType type, const std::vector<int64_t>& dims,
                   std::string_view arguments, std::string_view suffix,
                   Plans* plans) {
  for (std::string_view op : kReductions) {
    plans->push_back(UnaryPlan(type, dims,
                               fmt::format("{}(x{})", op, arguments),
                               fmt::format("{}_{}", op, suffix)));
  }
}

void AddChains(DataType type, int64_t n, int64_t extent, Plans* plans) {
  plans->push_back(Chain1Plan(type, {n, 8, extent, extent}, 4));
  plans->push_back(Chain2Plan(type, {n, 4, extent, extent}, 16, 4));
  plans->push_back(Chain3Plan(type, {n, 4, extent, extent}, 16, 4));
  plans->push_back(Chain4Plan(type, {n, 4, extent, extent}, 8, 2));
}

Plans Tiny() {
  Plans plans;
  for (DataType type : kTypes) {
    const ImageShape image{2, 4, 6, 5};
    const std::vector<int64_t> dims = {2, 4, 6, 5};
    plans.push_back(Conv2dPlan(type, image, {6}));
    plans.push_back(ConvTranspose2dPlan(type, image, {6}));
    plans.push_back(GroupNormPlan(type, image, 2));
    plans.push_back(BatchNormPlan(type, image));
    plans.push_back(PoolPlan(type, image, "max_pool2d", "kernel_size=2", "k2"));
    plans.push_back(PoolPlan(type, image, "avg_pool2d", "kernel_size=2", "k2"));
    AddReductions(type, dims, ", dim=1", "dim1", &plans);
    AddReductions(type, dims, ", dim=[2,3], keepdim=true", "dim23_keepdim",
                  &plans);
    plans.push_back(UnaryPlan(type, dims, "softmax(x, dim=1)", "softmax_dim1"));
    for (const UnaryCall& unary : kUnaryCalls) {
      plans.push_back(UnaryPlan(type, dims, unary.call, unary.name));
    }
    for (std::string_view op : kBinaries) {
      plans.push_back(BinaryPlan(type, op, dims, {4, 1, 1}));
    }
    plans.push_back(BinaryPlan(type, "sub", dims, dims));
    AddChains(type, 2, 8, &plans);
  }
  return plans;
}

Plans Tails() {
  Plans plans = ConvolutionTails();
  const Plans rows = RowTails();
  plans.insert(plans.end(), rows.begin(), rows.end());
  for (int64_t size : {15, 17, 31, 33, 63, 65, 127, 129}) {
    plans.push_back(Conv2dPlan(kF32, {1, 3, 5, size}, {5}));
    plans.push_back(Conv2dPlan(kF16, {1, size, 5, 6}, {size, 3, 1, 1}));
    plans.push_back(ConvTranspose2dPlan(kF32, {1, 3, 4, size}, {5}));
    plans.push_back(GroupNormPlan(kF32, {2, 6, 3, size}, 3));
    plans.push_back(
        UnaryPlan(kBF16, {3, size}, "softmax(x, dim=1)", "softmax_dim1"));
    plans.push_back(
        UnaryPlan(kF32, {2, size, 3}, "logsumexp(x, dim=1)", "logsumexp_dim1"));
    plans.push_back(PoolPlan(kF32, {1, 2, 6, size}, "max_pool2d",
                             "kernel_size=3, stride=2", "k3_s2"));
    plans.push_back(BinaryPlan(kF16, "mul", {3, size}, {size}));
  }
  for (int64_t size : {255, 257, 1023, 1025, 4097}) {
    plans.push_back(UnaryPlan(kF32, {size}, "silu(x)", "silu"));
    plans.push_back(UnaryPlan(kF16, {size}, "gelu(x)", "gelu"));
    plans.push_back(UnaryPlan(kF32, {2, size}, "sum(x, dim=1)", "sum_dim1"));
  }
  for (int64_t size : {31, 33}) AddChains(kF32, 1, size, &plans);
  return plans;
}

Plans Degenerate() {
  Plans plans = {
      Conv2dPlan(kF32, {1, 1, 1, 1}, {1, 1}),
      Conv2dPlan(kF32, {1, 1, 3, 3}, {1}),
      Conv2dPlan(kF16, {3, 7, 11, 13}, {5}),
      ConvTranspose2dPlan(kF32, {1, 1, 1, 1}, {1, 1}),
      ConvTranspose2dPlan(kF32, {3, 5, 1, 7}, {1}),
      GroupNormPlan(kF32, {1, 1, 1, 1}, 1),
      GroupNormPlan(kF32, {3, 7, 11, 13}, 7, false),
      GroupNormPlan(kF16, {1, 7, 1, 1}, 1),
      BatchNormPlan(kF32, {1, 1, 1, 1}, false),
      BatchNormPlan(kBF16, {3, 7, 11, 13}, false),
      PoolPlan(kF32, {1, 1, 1, 1}, "max_pool2d", "kernel_size=1", "k1"),
      PoolPlan(kF32, {1, 1, 7, 11}, "avg_pool2d", "kernel_size=[7,11]",
               "k7x11"),
      PoolPlan(kF32, {1, 1, 1, 1}, "max_pool2d",
               "kernel_size=2, stride=1, padding=1, dilation=2",
               "empty_window"),
      BinaryPlan(kF32, "add", {}, {}),
      BinaryPlan(kF32, "div", {3, 1, 5}, {7, 1}),
      BinaryPlan(kF16, "mul", {}, {3, 5}),
      Chain1Plan(kF32, {1, 2, 1, 1}, 1),
      Chain2Plan(kF32, {1, 1, 3, 3}, 1, 1),
      Chain3Plan(kF32, {1, 1, 6, 6}, 1, 1),
      Chain4Plan(kF32, {1, 1, 1, 1}, 1, 1),
  };
  const std::vector<int64_t> shapes[] = {{}, {1}, {7}, {5, 3}, {2, 3, 5}};
  for (const std::vector<int64_t>& dims : shapes) {
    plans.push_back(UnaryPlan(kF32, dims, "tanh(x)", "tanh"));
    plans.push_back(UnaryPlan(kF32, dims, "softmax(x, dim=-1)", "softmax"));
    AddReductions(kF32, dims, "", "all", &plans);
  }
  return plans;
}

void AddStridedConvs(Plans* plans) {
  const ImageShape image{2, 8, 13, 11};
  const ConvShape convs[] = {
      {6, 3, 2},          {6, 3, 3, 1},        {6, 5, 2, 2},
      {8, 3, 1, 1, 2},    {8, 3, 2, 3, 3},     {8, 3, 1, 1, 1, 2},
      {8, 3, 2, 1, 1, 8}, {16, 3, 1, 2, 2, 4}, {4, 1, 2, 0, 1, 2, 0, false},
  };
  for (const ConvShape& conv : convs) {
    plans->push_back(Conv2dPlan(kF32, image, conv));
    plans->push_back(ConvTranspose2dPlan(kF32, image, conv));
  }
  plans->push_back(Conv2dPlan(kF16, image, {16, 3, 2, 1, 2, 4}));
  plans->push_back(Conv2dPlan(kBF16, image, {16, 3, 2, 1, 2, 4}));
  plans->push_back(ConvTranspose2dPlan(kF32, image, {6, 3, 2, 1, 1, 1, 1}));
  plans->push_back(
      ConvTranspose2dPlan(kF16, image, {8, 4, 3, 1, 1, 4, 2, false}));
  plans->push_back(ConvTranspose2dPlan(kF32, image, {8, 3, 1, 0, 3, 2, 2}));
}

Plans Strided() {
  Plans plans;
  AddStridedConvs(&plans);
  const ImageShape image{2, 3, 13, 11};
  const UnaryCall max_pools[] = {
      {"kernel_size=3, stride=2", "k3_s2"},
      {"kernel_size=3, stride=2, padding=1", "k3_s2_p1"},
      {"kernel_size=3, stride=2, padding=1, ceil_mode=true", "k3_s2_p1_ceil"},
      {"kernel_size=[3,2], stride=[1,3], dilation=[2,1]", "k3x2_s1x3_d2x1"},
      {"kernel_size=5, stride=4, ceil_mode=true", "k5_s4_ceil"},
  };
  for (const UnaryCall& pool : max_pools) {
    plans.push_back(PoolPlan(kF32, image, "max_pool2d", pool.call, pool.name));
  }
  const UnaryCall avg_pools[] = {
      {"kernel_size=3, stride=2, padding=1", "k3_s2_p1"},
      {"kernel_size=3, stride=2, padding=1, count_include_pad=false",
       "k3_s2_p1_exclude"},
      {"kernel_size=4, stride=3, padding=2, ceil_mode=true", "k4_s3_p2_ceil"},
      {"kernel_size=4, stride=3, padding=2, ceil_mode=true, "
       "count_include_pad=false",
       "k4_s3_p2_ceil_exclude"},
      {"kernel_size=[2,3], stride=[3,1], divisor_override=5", "k2x3_s3x1_div5"},
  };
  for (const UnaryCall& pool : avg_pools) {
    plans.push_back(PoolPlan(kF32, image, "avg_pool2d", pool.call, pool.name));
  }
  plans.push_back(PoolPlan(kF16, image, "avg_pool2d",
                           "kernel_size=3, stride=2, padding=1", "k3_s2_p1"));
  return plans;
}

// y = act(norm(conv(x))), the block that most image networks repeat.
NamedPlan ConvBlock(std::string_view model, DataType type, ImageShape input,
                    ConvShape conv, std::string_view act) {
  NamedPlan plan = Conv2dPlan(type, input, conv);
  const size_t end = plan.text.find("output y");
  const std::string vector =
      fmt::format("{}[{}]", DataTypeName(type), conv.out_channels);
  plan.name = fmt::format("{}__{}__batch_norm__{}", model, plan.name, act);
  plan.text = fmt::format(
      "param mean: {0}\nparam var: {0}\nparam gamma: {0}\nparam beta: {0}\n"
      "{1}z = batch_norm(y, mean, var, gamma, beta)\na = {2}(z)\noutput a\n",
      vector, plan.text.substr(0, end), act);
  return plan;
}

// Convolutions in batches so large that they finish their norms themselves
// (kernel_sources/conv_finish.cuh): with a residual; with rows of whole vectors
// and a result of 16 bits; with a row, a column and the stored result as an
// output.
Plans FinishedNorms() {
  constexpr char kConv[] =
      "param w: f32[128,128,3,3]\nc = conv2d(x, w, padding=1)\n"
      "n = group_norm(c, num_groups=32)\n";
  return {
      {"finished_norm__residual", std::string("input x: f32[256,128,56,56]\n"
                                              "input z: f32[256,128,56,56]\n") +
                                      kConv +
                                      "a = add(n, z)\ny = relu(a)\noutput y\n"},
      {"finished_norm__f16_output",
       std::string("input x: f32[160,128,64,64]\n") + kConv +
           "s = silu(n)\ny = cast(s, dtype=f16)\noutput y\n"},
      {"finished_norm__row_and_column",
       std::string("input x: f32[256,128,56,56]\ninput r: f32[56]\n"
                   "input q: f32[56,1]\n") +
           kConv + "a = mul(n, r)\ny = add(a, q)\noutput y\noutput c\n"},
  };
}

// Convolutions whose blocks hold images (kernel_sources/conv_held.cuh): in one
// round and several, with a factor for each image and channel, one group of all
// channels, and a result of 16 bits; and those that hold windows.
Plans HeldNorms() {
  return {
      {"held_norm__rounds",
       "input x: f16[60,64,40,40]\nparam w: f16[64,64,3,3]\n"
       "c = conv2d(x, w, padding=1)\nn = group_norm(c, num_groups=8)\n"
       "y = silu(n)\noutput y\n"},
      {"held_norm__scaled_images",
       "input x: f16[32,256,48,56]\nparam w: f16[64,256,1,1]\n"
       "input s: f16[32,64,1,1]\nc = conv2d(x, w)\n"
       "n = group_norm(c, num_groups=8)\nm = mul(n, s)\ny = sigmoid(m)\n"
       "output y\n"},
      {"held_norm__strided",
       "input x: bf16[8,64,96,96]\nparam w: bf16[128,64,3,3]\n"
       "c = conv2d(x, w, stride=2, padding=1)\n"
       "n = group_norm(c, num_groups=1)\ny = cast(n, dtype=f16)\n"
       "output y\n"},
      {"held_norm__f32",
       "input x: f32[16,128,48,56]\nparam w: f32[64,128,1,1]\n"
       "c = conv2d(x, w)\nn = group_norm(c, num_groups=8)\n"
       "y = hardswish(n)\noutput y\n"},
      {"held_windows__extremes",
       "input x: f32[32,64,64,64]\nparam w: f32[64,64,3,3]\n"
       "c = conv2d(x, w, padding=1)\nn = group_norm(c, num_groups=8)\n"
       "r = relu(n)\ny = max_pool2d(r, kernel_size=2)\noutput y\n"},
      {"held_windows__means",
       "input x: f32[16,32,96,98]\nparam w: f32[64,32,3,3]\n"
       "c = conv2d(x, w, padding=1)\nn = group_norm(c, num_groups=8)\n"
       "p = avg_pool2d(n, kernel_size=4)\ny = sigmoid(p)\noutput y\n"},
  };
}

// Filters of one tap whose input is taken as it lies (conv_lines.cuh): images
// that are reshaped, a last chunk that is shorter, channels that fill no block,
// several groups, and a reduction of images.
Plans Lines() {
  return {
      {"lines__reshaped",
       "input x: f16[16,512,28,28]\nparam w: f16[128,512,1,1]\n"
       "param b: f16[128]\nc = conv2d(x, w, b)\ny = relu(c)\noutput y\n"},
      {"lines__short_chunk",
       "input x: bf16[4,200,40,56]\nparam w: bf16[328,200,1,1]\n"
       "c = conv2d(x, w)\ny = silu(c)\noutput y\n"},
      {"lines__groups",
       "input x: f16[8,256,32,32]\nparam w: f16[512,64,1,1]\n"
       "c = conv2d(x, w, groups=4)\ny = gelu(c)\noutput y\n"},
      {"lines__mean_of_image",
       "input x: f16[32,96,28,28]\nparam w: f16[192,96,1,1]\n"
       "c = conv2d(x, w)\nr = relu(c)\ny = mean(r, dim=[2,3])\n"
       "output y\n"},
  };
}

// Ops behind a convolution that read other tensors ahead (conv_beside.cuh): one
// and two, its input, in front of columns in two phases, and with a number for
// each channel.
Plans Residuals() {
  return {
      {"beside__lines",
       "input x: f16[8,64,56,56]\ninput z: f16[8,256,56,56]\n"
       "param w: f16[256,64,1,1]\nparam b: f16[256]\n"
       "c = conv2d(x, w, b)\na = add(c, z)\ny = relu(a)\noutput y\n"},
      {"beside__two",
       "input x: bf16[8,64,56,56]\ninput z: bf16[8,64,56,56]\n"
       "input q: bf16[8,64,56,56]\nparam w: bf16[64,64,3,3]\n"
       "c = conv2d(x, w, padding=1)\ng = mul(c, q)\na = add(g, z)\n"
       "y = silu(a)\noutput y\n"},
      {"beside__own_input",
       "input x: f16[16,128,28,28]\nparam w: f16[128,128,3,3]\n"
       "param s: f16[128,1,1]\nc = conv2d(x, w, padding=1)\n"
       "m = mul(c, s)\ny = add(m, x)\noutput y\n"},
      {"beside__phases",
       "input x: f16[4,64,24,36]\ninput z: f16[4,128,48,72]\n"
       "param w: f16[64,128,2,2]\nc = conv_transpose2d(x, w, stride=2)\n"
       "a = add(c, z)\ny = gelu(a)\noutput y\n"},
      {"beside__f32",
       "input x: f32[32,128,28,28]\ninput z: f32[32,128,28,28]\n"
       "param w: f32[128,128,3,3]\nc = conv2d(x, w, padding=1)\n"
       "a = add(c, z)\ny = relu(a)\noutput y\n"},
      {"beside__mixed",
       "input x: f16[8,64,56,56]\ninput z: f32[8,128,56,56]\n"
       "param w: f16[128,64,1,1]\nc = conv2d(x, w)\ny = add(c, z)\n"
       "output y\n"},
      // Rows that are odd, which do not.
      {"beside__odd_rows",
       "input x: f16[16,64,27,27]\ninput z: f16[16,64,27,27]\n"
       "param w: f16[64,64,3,3]\nc = conv2d(x, w, padding=1)\n"
       "a = add(c, z)\ny = relu(a)\noutput y\n"},
  };
}

Plans RealModels() {
  Plans plans = {
      Chain1Plan(kF32, {112, 64, 512, 512}, 8),
      Chain2Plan(kF32, {128, 8, 128, 128}, 64, 16),
      Chain3Plan(kF32, {128, 8, 128, 128}, 64, 16),
      Chain4Plan(kF32, {128, 64, 256, 256}, 64, 8),
      ConvBlock("resnet50_stem", kF16, {32, 3, 224, 224},
                {64, 7, 2, 3, 1, 1, 0, false}, "relu"),
      PoolPlan(kF16, {32, 64, 112, 112}, "max_pool2d",
               "kernel_size=3, stride=2, padding=1", "k3_s2_p1__resnet50"),
      ConvBlock("resnet50_layer2", kF16, {32, 128, 28, 28},
                {128, 3, 1, 1, 1, 1, 0, false}, "relu"),
      ConvBlock("mobilenetv3_depthwise", kF16, {32, 240, 14, 14},
                {240, 3, 1, 1, 1, 240, 0, false}, "hardswish"),
      ConvBlock("efficientnet_expand", kBF16, {16, 40, 28, 28},
                {240, 1, 1, 0, 1, 1, 0, false}, "silu"),
      Conv2dPlan(kBF16, {8, 96, 56, 56}, {96, 7, 1, 3, 1, 96}),
      Conv2dPlan(kF16, {8, 3, 224, 224}, {768, 16, 16}),
      Chain4Plan(kF16, {4, 512, 32, 32}, 256, 32),
      ConvTranspose2dPlan(kF32, {64, 512, 4, 4},
                          {256, 4, 2, 1, 1, 1, 0, false}),
      GroupNormPlan(kF16, {2, 320, 64, 64}, 32),
      UnaryPlan(kF16, {16, 2048, 7, 7}, "mean(x, dim=[2,3])",
                "resnet50_pool_mean_dim23"),
      UnaryPlan(kF32, {256, 1000}, "softmax(x, dim=1)",
                "resnet50_softmax_dim1"),
  };
  for (const Plans& more :
       {HeldNorms(), FinishedNorms(), Lines(), Residuals()}) {
    plans.insert(plans.end(), more.begin(), more.end());
  }
  return plans;
}

struct ShapeSet {
  std::string_view name;
  Plans (*plans)();
};

constexpr ShapeSet kSets[] = {{"tiny", Tiny},
                              {"tails", Tails},
                              {"degenerate", Degenerate},
                              {"strided", Strided},
                              {"real_models", RealModels}};

}  // namespace

std::vector<std::string> ShapeSetNames() {
  std::vector<std::string> names;
  for (const ShapeSet& set : kSets) names.emplace_back(set.name);
  return names;
}

std::vector<NamedPlan> PlansOfShapeSet(std::string_view name) {
  for (const ShapeSet& set : kSets) {
    if (set.name == name) return set.plans();
  }
  std::abort();
}

std::vector<std::string> ShapeSetCoverage::NeverRan() const {
  std::vector<std::string> missing;
  for (const ShapeSet& set : kSets) {
    std::string name(set.name);
    if (ran_.count(name) == 0) missing.push_back(std::move(name));
  }
  return missing;
}

}  // namespace kiln
