#include "tests/row_shape_plans.h"

#include <fmt/format.h>

#include <string_view>

namespace kiln {
namespace {

using Plans = std::vector<NamedPlan>;

constexpr DataType kTypes[] = {DataType::kF32, DataType::kF16, DataType::kBF16};
constexpr std::string_view kReductions[] = {"sum", "mean", "amax", "amin",
                                            "logsumexp"};

// Rows that lanes of a warp, a block and a cluster keep, and rows side by side.
Plans ReducedRows() {
  constexpr std::string_view kShapes[][3] = {{"97,40", "1", "warp"},
                                             {"5,5003", "1", "block"},
                                             {"2,60000", "1", "cluster"},
                                             {"3,21,33,31", "1", "columns"},
                                             {"3,9,20,30", "[2,3]", "images"}};
  Plans plans;
  for (const std::string_view op : kReductions) {
    for (const auto& [dims, dim, name] : kShapes) {
      plans.push_back(
          {fmt::format("reduced_rows__{}__{}", op, name),
           fmt::format("input x: f32[{}]\nm = {}(x, dim={}, keepdim=true)\n"
                       "y = sub(x, m)\noutput y\n",
                       dims, op, dim)});
    }
  }
  return plans;
}

Plans RootMeanSquares() {
  Plans plans;
  for (const DataType type : kTypes) {
    for (const int64_t length : {96, 2048, 8191}) {
      plans.push_back(
          {fmt::format("root_mean_square__{}__{}", DataTypeName(type), length),
           fmt::format("input x: {0}[33,{1}]\nparam w: {0}[{1}]\n"
                       "q = mul(x, x)\nm = mean(q, dim=1, keepdim=true)\n"
                       "e = add(m, 1e-5)\ns = sqrt(e)\nd = div(x, s)\n"
                       "y = mul(d, w)\noutput y\n",
                       DataTypeName(type), length)});
    }
  }
  return plans;
}

// Rows that end in a reduction of their own, and what is kept in memory beside.
Plans RowsBesideOthers() {
  return {
      {"rows__variance",
       "input x: f16[6,20,31,33]\nm = mean(x, dim=[2,3], keepdim=true)\n"
       "d = sub(x, m)\nq = mul(d, d)\nv = mean(q, dim=[2,3])\n"
       "y = sqrt(v)\noutput y\n"},
      {"rows__source_is_output",
       "input x: f32[4,16,16,16]\nr = relu(x)\nq = neg(r)\n"
       "g = group_norm(r, num_groups=4)\nk = relu(g)\n"
       "y = mean(k, dim=[2,3])\noutput y\noutput q\n"},
      {"rows__reduction_is_output",
       "input x: f32[40,300]\nm = mean(x, dim=1, keepdim=true)\n"
       "y = sub(x, m)\noutput y\noutput m\n"},
      {"rows__of_another_axis",
       "input x: f32[64,64]\nm = mean(x, dim=1)\ny = sub(x, m)\noutput y\n"},
      {"rows__gate",
       "input x: bf16[4,32,19,21]\ninput b: bf16[4,32,1,1]\n"
       "m = mean(x, dim=[2,3], keepdim=true)\na = add(m, b)\n"
       "s = sigmoid(a)\ny = mul(x, s)\noutput y\n"},
      {"rows__layer_norm_by_hand",
       "input x: f32[50,700]\nm = mean(x, dim=1, keepdim=true)\n"
       "d = sub(x, m)\nq = mul(d, d)\nv = mean(q, dim=1, keepdim=true)\n"
       "e = add(v, 1e-5)\ns = sqrt(e)\ny = div(d, s)\noutput y\n"},
      {"rows__statistic_behind_the_tail",
       "input x: f32[64,1000]\ns = logsumexp(x, dim=1, keepdim=true)\n"
       "q = exp(s)\nd = sub(x, s)\ng = tanh(d)\n"
       "m = sum(g, dim=1, keepdim=true)\ny = mul(m, q)\noutput y\n"},
      {"rows__beside_the_statistic",
       "input x: f32[64,1000]\ninput a: f32[64,1]\ninput b: f32[1,1000]\n"
       "t = add(a, b)\nu = mul(t, x)\ns = softmax(t, dim=1)\n"
       "y = add(u, s)\noutput y\n"},
      {"rows__l2_of_channels",
       "input x: f16[3,64,24,25]\nq = mul(x, x)\n"
       "s = sum(q, dim=1, keepdim=true)\nr = sqrt(s)\nm = maximum(r, 1e-6)\n"
       "y = div(x, m)\noutput y\n"},
  };
}

// A layer norm over channels of `type`, by hand.
NamedPlan ChannelNorm(DataType type, std::string_view dims, int channels) {
  return {fmt::format("channel_norm__{}__{}", DataTypeName(type), channels),
          fmt::format("input x: {0}[{1}]\nparam g: {0}[{2},1,1]\n"
                      "m = mean(x, dim=1, keepdim=true)\nd = sub(x, m)\n"
                      "q = mul(d, d)\nv = mean(q, dim=1, keepdim=true)\n"
                      "e = add(v, 1e-6)\ns = sqrt(e)\nn = div(d, s)\n"
                      "y = mul(n, g)\noutput y\n",
                      DataTypeName(type), dims, channels)};
}

// Parts of models as they are written: what stands beside one-tap
// convolutions, numbers of channels that many elements have in common, and
// reductions of the same elements with something between them.
Plans Blocks() {
  const std::string bottleneck =
      "param u: f16[24,48,1,1]\nparam v: f16[24,24,3,3]\n"
      "param w: f16[48,24,1,1]\na = conv2d(x, u)\nb = relu(a)\n"
      "c = conv2d(b, v, padding=1)\nd = relu(c)\ne = conv2d(d, w)\n"
      "f = add(e, x)\ny = relu(f)\noutput y\n";
  return {
      ChannelNorm(DataType::kF16, "5,192,7,7", 192),
      ChannelNorm(DataType::kBF16, "9,768,14,14", 768),
      ChannelNorm(DataType::kF32, "9,384,7,7", 384),
      ChannelNorm(DataType::kF16, "3,96,20,20", 96),
      {"blocks__bottleneck_14", "input x: f16[6,48,14,14]\n" + bottleneck},
      {"blocks__bottleneck_28", "input x: f16[5,48,28,28]\n" + bottleneck},
      {"blocks__norm_mlp",
       "input x: bf16[5,64,14,14]\nparam u: bf16[128,64,1,1]\n"
       "param w: bf16[64,128,1,1]\nm = mean(x, dim=1, keepdim=true)\n"
       "d = sub(x, m)\nq = mul(d, d)\nv = mean(q, dim=1, keepdim=true)\n"
       "e = add(v, 1e-5)\ns = sqrt(e)\nn = div(d, s)\na = conv2d(n, u)\n"
       "g = gelu(a)\nc = conv2d(g, w)\ny = add(c, x)\noutput y\n"},
      {"blocks__mlp_197_tokens",
       "input x: bf16[16,512,1,197]\nparam u: bf16[1536,512,1,1]\n"
       "param b: bf16[1536]\nparam w: bf16[512,1536,1,1]\n"
       "a = conv2d(x, u, b)\ng = gelu(a)\nc = conv2d(g, w)\n"
       "y = add(c, x)\noutput y\n"},
      {"blocks__gated_mlp_7x9",
       "input x: f16[12,1024,7,9]\nparam u: f16[4096,1024,1,1]\n"
       "param v: f16[4096,1024,1,1]\nparam w: f16[1024,4096,1,1]\n"
       "param f: f16[1024,1,1]\na = conv2d(x, u)\ns = silu(a)\n"
       "b = conv2d(x, v)\ng = mul(s, b)\nc = conv2d(g, w)\nd = mul(c, f)\n"
       "y = relu(d)\noutput y\n"},
      {"blocks__spatial_attention",
       "input x: f16[5,72,18,22]\nparam w: f16[1,1,7,7]\n"
       "param v: f16[1,1,7,7]\nm = mean(x, dim=1, keepdim=true)\n"
       "a = conv2d(m, w, padding=3)\nl = amax(x, dim=1, keepdim=true)\n"
       "b = conv2d(l, v, padding=3)\nc = add(a, b)\ns = sigmoid(c)\n"
       "y = mul(x, s)\noutput y\n"},
      {"blocks__gate_7",
       "input x: f16[9,40,7,7]\ninput s: f16[9,40,1,1]\ng = sigmoid(s)\n"
       "y = mul(x, g)\noutput y\n"},
      {"blocks__gate_of_a_mean",
       "input x: f32[9,40,8,12]\ninput s: f32[1,40,1,1]\nt = add(s, 1.0)\n"
       "g = tanh(t)\na = mul(x, g)\ny = mean(a, dim=[2,3])\noutput y\n"},
      {"blocks__norm_and_mean_7",
       "input x: f16[33,72,7,7]\nparam m: f16[72]\nparam var: f16[72]\n"
       "n = batch_norm(x, m, var)\nr = relu(n)\ny = mean(r, dim=[2,3])\n"
       "output y\n"},
  };
}

// Each channel by the statistics of all images.
Plans Runs() {
  const struct {
    int images, channels;
    const char* size;
  } kShapes[] = {{9, 40, "7,7"},
                 {6, 33, "8,8"},
                 {24, 5, "31,33"},
                 {3, 7, "64,128"},
                 {16, 3, "128,130"}};
  Plans plans;
  for (const DataType type : kTypes) {
    for (const auto& [images, channels, size] : kShapes) {
      const std::string dims = fmt::format("{},{},{}", images, channels, size);
      plans.push_back(
          {fmt::format("runs__{}__{}", DataTypeName(type), channels),
           fmt::format("input x: {0}[{1}]\nparam w: {0}[{2},1,1]\n"
                       "m = mean(x, dim=[0,2,3], keepdim=true)\nd = sub(x, m)\n"
                       "q = mul(d, d)\nv = mean(q, dim=[0,2,3], keepdim=true)\n"
                       "e = add(v, 1e-5)\ns = sqrt(e)\nn = div(d, s)\n"
                       "t = mul(n, w)\ny = silu(t)\noutput y\noutput v\n",
                       DataTypeName(type), dims, channels)});
    }
  }
  plans.push_back({"runs__numbers",
                   "input x: f32[40,6,24,24]\nq = mul(x, x)\n"
                   "a = sum(x, dim=[0,2,3])\nb = sum(q, dim=[0,2,3])\n"
                   "y = div(a, b)\noutput y\n"});
  return plans;
}

Plans SinglePixels() {
  Plans plans;
  for (const DataType type : kTypes) {
    for (const int64_t images : {129, 200, 320}) {
      plans.push_back(
          {fmt::format("single_pixels__{}__{}", DataTypeName(type), images),
           fmt::format("input x: {0}[{1},72,1,1]\nparam w: {0}[136,72,1,1]\n"
                       "param b: {0}[136]\nc = conv2d(x, w, b)\n"
                       "y = gelu(c)\noutput y\n",
                       DataTypeName(type), images)});
    }
  }
  plans.push_back({"single_pixels__whole_images",
                   "input x: f32[150,16,5,7]\nparam w: f32[40,16,5,7]\n"
                   "c = conv2d(x, w, stride=2)\ny = relu(c)\noutput y\n"});
  plans.push_back({"single_pixels__two_layers",
                   "input x: f16[160,40,6,6]\nparam w: f16[24,40,1,1]\n"
                   "param v: f16[40,24,1,1]\n"
                   "m = avg_pool2d(x, kernel_size=6)\nc = conv2d(m, w)\n"
                   "r = relu(c)\nd = conv2d(r, v)\ns = sigmoid(d)\n"
                   "y = mul(x, s)\noutput y\n"});
  return plans;
}

}  // namespace

std::vector<NamedPlan> RowTails() {
  Plans plans = ReducedRows();
  for (const Plans& more : {RootMeanSquares(), RowsBesideOthers(), Blocks(),
                            Runs(), SinglePixels()}) {
    plans.insert(plans.end(), more.begin(), more.end());
  }
  return plans;
}

}  // namespace kiln
