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
  for (const Plans& more :
       {RootMeanSquares(), RowsBesideOthers(), SinglePixels()}) {
    plans.insert(plans.end(), more.begin(), more.end());
  }
  return plans;
}

}  // namespace kiln
