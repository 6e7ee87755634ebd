#include "tests/ptx/row_plans.h"

#include "fmt/format.h"

namespace kiln::ptx {
namespace {

// A batch norm by the batch's own statistics, and relu.
std::string Trained(std::string_view input, std::string_view weight) {
  return fmt::format(
      "input x: {}\nparam w: {}\nm = mean(x, dim=[0,2,3], keepdim=true)\n"
      "d = sub(x, m)\nq = mul(d, d)\n"
      "v = mean(q, dim=[0,2,3], keepdim=true)\ne = add(v, 1e-5)\n"
      "s = sqrt(e)\nn = div(d, s)\nt = mul(n, w)\ny = relu(t)\noutput y\n",
      input, weight);
}

// Of one channel the power is nothing, so that the other is the logarithm.
TemplatePlan MaskedLogSumExp() {
  TemplatePlan plan = {
      "rows_masked_powers", "reduce.cu",
      "input m: f32[1,2,1,1]\ninput x: f32[64,2,5,5]\ns = mul(x, 1e-4)\n"
      "t = tanh(s)\nq = mul(m, m)\nr = sub(q, 1)\nk = mul(r, 1e30)\n"
      "a = minimum(t, k)\ny = logsumexp(a, dim=1)\noutput y\n"};
  plan.channel_factors = {0, 1e3};
  return plan;
}

}  // namespace

std::vector<TemplatePlan> RowPlans() {
  return {
      MaskedLogSumExp(),
      {"rows_signs_of_zero", "row_warp.cu",
       "input x: f32[4,600]\na = abs(x)\ns = sum(a, dim=1, keepdim=true)\n"
       "z = mul(x, 0)\nd = div(z, s)\nr = div(1, d)\n"
       "y = clamp(r, min=-1, max=1)\noutput y\n"},
      {"rows_warp", "row_warp.cu",
       "input x: bf16[64,512]\ny = softmax(x, dim=1)\noutput y\n"},
      {"rows_warps", "row_warp.cu",
       "input x: f32[4,32,14,14]\ny = group_norm(x, num_groups=4)\noutput y\n",
       "sm_90a/8"},
      {"rows_warp_masked", "row_warp.cu",
       "input x: bf16[3,2,16,64]\ninput z: bf16[16,64]\na = mul(x, 0.125)\n"
       "b = add(a, z)\ny = softmax(b, dim=3)\noutput y\n"},
      {"rows_warps_softmax", "row_warp.cu",
       "input x: bf16[3,2,4,1027]\ninput z: bf16[4,1027]\na = mul(x, 0.125)\n"
       "b = add(a, z)\ny = softmax(b, dim=3)\noutput y\n"},
      {"rows_warps_logsumexp", "row_warp.cu",
       "input x: f16[9,5120]\nm = logsumexp(x, dim=1, keepdim=true)\n"
       "y = sub(x, m)\noutput y\n"},
      {"rows_block", "row_block.cu",
       "input x: f32[4,32,48,48]\ny = group_norm(x, num_groups=4)\noutput y\n",
       "sm_90a/8"},
      {"rows_cluster", "row_block.cu",
       "input x: f32[2,64,128,128]\ny = group_norm(x, num_groups=8)\n"
       "output y\n",
       "sm_90a/4"},
      {"rows_mean", "row_block.cu",
       "input x: f32[2,64,28,28]\nn = group_norm(x, num_groups=8)\n"
       "y = mean(n, dim=[2,3])\noutput y\n"},
      {"rows_warp_mean", "row_warp.cu",
       "input x: f16[70,200]\nm = mean(x, dim=1, keepdim=true)\n"
       "y = sub(x, m)\noutput y\n"},
      {"rows_warp_logsumexp", "row_warp.cu",
       "input x: f32[70,100]\nm = logsumexp(x, dim=1, keepdim=true)\n"
       "y = sub(x, m)\noutput y\n"},
      // Exactly 0 where a number is the largest of its row.
      {"rows_less_themselves", "row_warp.cu",
       "input x: f32[200,64]\n"
       "a = abs(x)\n"
       "m = amax(a, dim=[1], keepdim=true)\n"
       "p = div(a, m)\n"
       "q = mul(p, p)\n"
       "d = sub(1, q)\n"
       "y = sqrt(d)\n"
       "e = minimum(y, 0.001)\n"
       "o = cast(e, dtype=f16)\n"
       "output o\n"},
      Tuned({"rows_powers_twice", "row_block.cu",
             "input x: f16[9,30000]\na = mul(x, 0.5)\np = softmax(a, dim=1)\n"
             "y = mul(p, a)\noutput y\n",
             "sm_90a/8"},
            {.rows = 1}),
      {"rows_root_mean_square", "row_block.cu",
       "input x: bf16[9,9000]\nparam w: bf16[9000]\nq = mul(x, x)\n"
       "m = mean(q, dim=1, keepdim=true)\ne = add(m, 1e-5)\n"
       "s = sqrt(e)\nd = div(x, s)\ny = mul(d, w)\noutput y\n"},
      {"rows_warps_root_mean_square", "row_warp.cu",
       "input x: bf16[9,3000]\nparam w: bf16[3000]\nq = mul(x, x)\n"
       "m = mean(q, dim=1, keepdim=true)\ne = add(m, 1e-5)\n"
       "s = sqrt(e)\nd = div(x, s)\ny = mul(d, w)\noutput y\n"},
      {"rows_variance", "row_block.cu",
       "input x: f32[4,2,130,131]\nm = mean(x, dim=[2,3], keepdim=true)\n"
       "d = sub(x, m)\nq = mul(d, d)\ny = mean(q, dim=[2,3])\noutput y\n"},
      {"rows_variance_in_registers", "row_warp_chain.cu",
       "input x: f32[4,8,36,37]\nm = mean(x, dim=[2,3], keepdim=true)\n"
       "d = sub(x, m)\nq = mul(d, d)\ny = mean(q, dim=[2,3])\noutput y\n"},
      {"rows_norm_of_extremes", "row_warp_chain.cu",
       "input x: f16[2,16,31,33]\nn = group_norm(x, num_groups=16)\n"
       "r = leaky_relu(n)\ny = amax(r, dim=[2,3])\noutput y\n"},
      {"rows_norm_of_heads", "row_warp.cu",
       "input x: f32[70,100]\nq = mul(x, x)\n"
       "m = sum(q, dim=1, keepdim=true)\ns = sqrt(m)\n"
       "c = maximum(s, 1e-12)\ny = div(x, c)\noutput y\n"},
      {"rows_streamed", "reduce.cu",
       "input x: f16[2700,3136]\ny = mean(x, dim=1)\noutput y\n"},
      {"rows_variance_streamed", "row_block.cu",
       "input x: f32[33,8,130,131]\nm = mean(x, dim=[2,3], keepdim=true)\n"
       "d = sub(x, m)\nq = mul(d, d)\ny = mean(q, dim=[2,3])\noutput y\n"},
      {"rows_of_maxima", "row_block.cu",
       "input x: f32[9,9000]\nm = amax(x, dim=1, keepdim=true)\n"
       "d = div(x, m)\nq = mul(d, d)\ns = sub(1, q)\n"
       "a = abs(s)\ny = sqrt(a)\noutput y\n"},
      {"columns_streamed", "reduce.cu",
       "input x: f32[40,50,2100]\ny = amin(x, dim=1)\noutput y\n"},
      {"rows_cluster_amax", "row_block.cu",
       "input x: f32[8,60000]\nm = amax(x, dim=1, keepdim=true)\n"
       "y = sub(x, m)\noutput y\n",
       "sm_90a/8"},
      {"columns", "column_block.cu",
       "input x: f32[1,3300,4,8]\ny = softmax(x, dim=1)\noutput y\n",
       "sm_90a/8"},
      {"columns_in_registers", "row_warp_chain.cu",
       "input x: f32[2,64,20,20]\ny = softmax(x, dim=1)\noutput y\n",
       "sm_90a/8"},
      {"columns_in_registers_among_ops", "row_warp_chain.cu",
       "input x: bf16[2,37,6,22]\ng = gelu(x)\np = softmax(g, dim=1)\n"
       "t = tanh(p)\ny = add(t, x)\noutput y\noutput p\n",
       "sm_90a/8"},
      {"columns_of_many_lanes", "row_warp_chain.cu",
       "input x: f32[1,1300,4,5]\ng = mish(x)\np = softmax(g, dim=1)\n"
       "y = mul(p, x)\noutput y\n"},
      {"columns_of_narrow_images", "row_warp_chain.cu",
       "input x: f32[60,2,38,10]\ny = softmax(x, dim=2)\noutput y\n",
       "sm_90a/8"},
      {"columns_mean", "column_block.cu",
       "input x: f16[2,1100,8,9]\nm = mean(x, dim=1, keepdim=true)\n"
       "y = sub(x, m)\noutput y\n",
       "sm_90a/8"},
      {"columns_mean_in_registers", "row_warp_chain.cu",
       "input x: f16[2,64,20,21]\nm = mean(x, dim=1, keepdim=true)\n"
       "y = sub(x, m)\noutput y\n",
       "sm_90a/8"},
      {"columns_share_of_mean", "column_block.cu",
       "input x: f32[2,64,20,20]\ninput z: f32[2,1,20,20]\n"
       "m = mean(x, dim=1, keepdim=true)\nt = mul(m, z)\n"
       "y = sub(x, t)\noutput y\n"},
      {"columns_logsumexp", "column_block.cu",
       "input x: f32[2,700,8,9]\nm = logsumexp(x, dim=1, keepdim=true)\n"
       "y = sub(x, m)\noutput y\n",
       "sm_90a/8"},
      {"columns_logsumexp_in_registers", "row_warp_chain.cu",
       "input x: f32[2,50,20,20]\nm = logsumexp(x, dim=1, keepdim=true)\n"
       "y = sub(x, m)\noutput y\n",
       "sm_90a/8"},
      {"few_columns_f32", "reduce.cu",
       "input x: f32[1,513,12,12]\ny = mean(x, dim=1)\noutput y\n"},
      {"few_columns", "reduce.cu",
       "input x: bf16[2,481,10,10]\ny = logsumexp(x, dim=1)\noutput y\n"},
      {"rows_chain", "row_chain.cu",
       "input x: bf16[9,17000]\nparam w: bf16[17000]\n"
       "m = mean(x, dim=1, keepdim=true)\nd = sub(x, m)\nq = mul(d, d)\n"
       "v = mean(q, dim=1, keepdim=true)\ne = add(v, 1e-5)\ns = sqrt(e)\n"
       "n = div(d, s)\ny = mul(n, w)\noutput y\n",
       "sm_90a/8"},
      {"rows_warps_chain", "row_warp_chain.cu",
       "input x: bf16[40,3000]\nparam w: bf16[3000]\n"
       "m = mean(x, dim=1, keepdim=true)\nd = sub(x, m)\nq = mul(d, d)\n"
       "v = mean(q, dim=1, keepdim=true)\ne = add(v, 1e-5)\ns = sqrt(e)\n"
       "n = div(d, s)\ny = mul(n, w)\noutput y\n"},
      {"rows_chain_numbers", "row_chain.cu",
       "input x: f32[40,17000]\ninput z: f32[40,17000]\na = mul(x, z)\n"
       "b = sum(a, dim=1)\nc = mul(x, x)\nd = sum(c, dim=1)\ne = mul(z, z)\n"
       "f = sum(e, dim=1)\ng = mul(d, f)\nh = sqrt(g)\ny = div(b, h)\n"
       "output y\n",
       "sm_90a/8"},
      {"rows_chain_images", "row_chain.cu",
       "input x: f16[3,5,131,133]\na = amin(x, dim=[2,3], keepdim=true)\n"
       "b = amax(x, dim=[2,3], keepdim=true)\nr = sub(b, a)\nd = sub(x, a)\n"
       "y = div(d, r)\noutput y\noutput b\n",
       "sm_90a/8"},
      // Sums of a ratio, in one pass by blocks that leave states.
      {"rows_chain_one_pass", "row_chain.cu",
       "input x: f32[2,4,150,150]\ninput z: f32[2,4,150,150]\n"
       "s = sigmoid(x)\np = mul(s, z)\ni = sum(p, dim=[2,3])\n"
       "a = sum(s, dim=[2,3])\nb = sum(z, dim=[2,3])\nc = add(a, b)\n"
       "e = add(c, 1)\ny = div(i, e)\noutput y\n",
       "sm_90a/8"},
      // By more blocks than a warp could merge.
      {"rows_chain_totals", "row_chain.cu",
       "input x: f32[2,1,256,256]\ninput z: f32[2,1,256,256]\n"
       "s = sigmoid(x)\np = mul(s, z)\na = sum(p)\nb = sum(s)\nc = sum(z)\n"
       "d = add(b, c)\ny = div(a, d)\noutput y\noutput b\n"},
      // A total, taken of each row first.
      {"rows_then_total", "row_warp_chain.cu",
       "input x: f16[90,1000]\nl = logsumexp(x, dim=1, keepdim=true)\n"
       "d = sub(x, l)\np = exp(d)\ne = mul(p, d)\ny = sum(e)\noutput y\n"},
      {"rows_chain_one_pass_f16", "row_chain.cu",
       "input x: f16[60,20000]\nm = mean(x, dim=1)\na = amax(x, dim=1)\n"
       "b = amin(x, dim=1)\nd = sub(a, b)\ny = div(m, d)\noutput y\n",
       "sm_90a/8"},
      {"rows_chain_two_passes", "row_chain.cu",
       "input x: f32[9,17000]\nm = amax(x, dim=1, keepdim=true)\n"
       "d = sub(x, m)\ne = exp(d)\ns = sum(e, dim=1, keepdim=true)\n"
       "w = mul(e, d)\nt = sum(w, dim=1, keepdim=true)\nq = div(t, s)\n"
       "y = sub(d, q)\noutput y\noutput t\n",
       "sm_90a/8"},
      {"columns_chain", "row_chain.cu",
       "input x: f32[2,2100,7,12]\nparam w: f32[2100,1,1]\n"
       "m = mean(x, dim=1, keepdim=true)\nd = sub(x, m)\nq = mul(d, d)\n"
       "v = mean(q, dim=1, keepdim=true)\ne = add(v, 1e-6)\ns = sqrt(e)\n"
       "n = div(d, s)\ny = mul(n, w)\noutput y\n",
       "sm_90a/8"},
      Tuned({"columns_chain_softmax", "row_chain.cu",
             "input x: f32[2,1100,6,8]\np = softmax(x, dim=1)\n"
             "l = logsumexp(x, dim=1, keepdim=true)\ng = sub(x, l)\n"
             "h = mul(p, g)\ny = sum(h, dim=1)\noutput y\n"},
            {.rows = 1}),
      {"rows_warp_chain", "row_warp_chain.cu",
       "input x: bf16[40,1000]\nparam w: bf16[1000]\n"
       "m = mean(x, dim=1, keepdim=true)\nd = sub(x, m)\nq = mul(d, d)\n"
       "v = mean(q, dim=1, keepdim=true)\ne = add(v, 1e-5)\ns = sqrt(e)\n"
       "n = div(d, s)\ny = mul(n, w)\noutput y\n",
       "sm_90a/8"},
      {"rows_warp_chain_numbers", "row_warp_chain.cu",
       "input x: f32[37,50]\ninput z: f32[37,50]\na = mul(x, z)\n"
       "b = sum(a, dim=1)\nc = mul(x, x)\nd = sum(c, dim=1)\ne = mul(z, z)\n"
       "f = sum(e, dim=1)\ng = mul(d, f)\nh = sqrt(g)\ny = div(b, h)\n"
       "output y\n"},
      {"rows_warp_chain_images", "row_warp_chain.cu",
       "input x: f16[3,20,31,33]\na = amin(x, dim=[2,3], keepdim=true)\n"
       "b = amax(x, dim=[2,3], keepdim=true)\nr = sub(b, a)\nd = sub(x, a)\n"
       "y = div(d, r)\noutput y\noutput b\n",
       "sm_90a/8"},
      {"rows_warp_chain_norm", "row_warp_chain.cu",
       "input x: f32[50,8,3,25]\nn = group_norm(x, num_groups=8)\n"
       "l = logsumexp(n, dim=[2,3], keepdim=true)\n"
       "r = group_norm(n, num_groups=8)\ny = sub(r, l)\noutput y\n",
       "sm_90a/8"},
      {"rows_warp_chain_groups", "row_warp_chain.cu",
       "input x: f32[6,16,3,24]\nparam w: f32[16]\nparam b: f16[16]\n"
       "n = group_norm(x, w, b, num_groups=4)\nr = relu(n)\n"
       "y = group_norm(r, w, b, num_groups=4)\noutput y\n"},
      {"columns_warp_chain_softmax", "row_warp_chain.cu",
       "input x: f32[2,21,16,18]\np = softmax(x, dim=1)\n"
       "l = logsumexp(x, dim=1, keepdim=true)\ng = sub(x, l)\n"
       "h = mul(p, g)\ny = sum(h, dim=1)\noutput y\n"},
      {"columns_warp_chain_lanes", "row_warp_chain.cu",
       "input x: f32[2,97,7,12]\nparam w: f32[97,1,1]\n"
       "m = mean(x, dim=1, keepdim=true)\nd = sub(x, m)\nq = mul(d, d)\n"
       "v = mean(q, dim=1, keepdim=true)\ne = add(v, 1e-6)\ns = sqrt(e)\n"
       "n = div(d, s)\ny = mul(n, w)\noutput y\n"},
      {"columns_warp_chain_powers", "row_warp_chain.cu",
       "input x: bf16[2,100,7,8]\nl = logsumexp(x, dim=1, keepdim=true)\n"
       "g = sub(x, l)\na = amin(g, dim=1, keepdim=true)\ny = sub(g, a)\n"
       "output y\noutput l\n"},
      {"columns_warp_chain", "row_warp_chain.cu",
       "input x: f16[2,13,7,12]\nparam w: f16[13,1,1]\n"
       "m = mean(x, dim=1, keepdim=true)\nd = sub(x, m)\nq = mul(d, d)\n"
       "v = mean(q, dim=1, keepdim=true)\ne = add(v, 1e-6)\ns = sqrt(e)\n"
       "n = div(d, s)\ny = mul(n, w)\noutput y\noutput m\n"},
      {"rows_warp_chains", "row_warp_chain.cu",
       "input x: bf16[1,128,256]\ninput z: bf16[1,128,256]\n"
       "a = softmax(z, dim=2)\nb = amin(x, dim=2, keepdim=true)\n"
       "c = minimum(a, b)\nd = amin(a, dim=1, keepdim=true)\ne = add(a, d)\n"
       "y = logsumexp(a, dim=1, keepdim=true)\noutput y\noutput c\n"
       "output e\n"},
      {"runs_warp_chain", "row_warp_chain.cu",
       Trained("f16[5,6,7,7]", "f16[6,1,1]")},
      Tuned({"runs_chain", "row_chain.cu",
             Trained("f32[16,4,32,33]", "f32[4,1,1]")},
            {.rows = 1}),
      Tuned({"runs_chain_cluster", "row_chain.cu",
             Trained("f32[30,2,44,45]", "f32[2,1,1]")},
            {.rows = 1}),
      Tuned({"runs_chain_splits", "row_chain.cu",
             "input x: bf16[9,3,40,24]\nq = mul(x, x)\n"
             "m = mean(x, dim=[0,2,3])\ny = amax(q, dim=[0,2,3])\n"
             "output y\noutput m\n"},
            {.rows = 3}),
      {"runs_chain_rows_of_images", "row_warp_chain.cu",
       "input x: f32[1,6,5,8]\nm = amax(x, dim=[1,3], keepdim=true)\n"
       "d = sub(x, m)\nv = sum(d, dim=[1,3], keepdim=true)\n"
       "y = div(d, v)\noutput y\noutput v\n"},
      {"rows_chain_nested", "row_chain.cu",
       "input x: f16[24,16,64,48]\nparam w: f16[16]\nparam b: f16[16]\n"
       "n = group_norm(x, w, b, num_groups=4)\nr = relu(n)\n"
       "y = group_norm(r, w, b, num_groups=2)\noutput y\n",
       "sm_90a/4"},
      {"rows_nested_apart", "reduce.cu",
       "input x: f32[1,2,64,64]\na = group_norm(x, num_groups=1)\n"
       "b = group_norm(a, num_groups=2)\ny = amax(b, dim=1)\noutput y\n"},
      {"rows_nested_mean", "row_block.cu",
       "input x: f32[8,2,136,136]\na = group_norm(x, num_groups=2)\n"
       "b = group_norm(a, num_groups=1)\nr = relu(a)\n"
       "m = mean(r, dim=[2,3], keepdim=true)\ny = mul(b, m)\noutput y\n",
       "sm_90a/8"},
      {"rows_chain_cluster", "row_chain.cu",
       "input x: f32[40,65536]\nm = amax(x, dim=1, keepdim=true)\n"
       "d = sub(x, m)\ne = exp(d)\ns = sum(e, dim=1, keepdim=true)\n"
       "y = div(e, s)\noutput y\noutput s\n",
       "sm_90a/16"},
      {"rows_one_by_channel", "row_chain.cu",
       "input x: f32[1,17000]\nparam w: f32[17000]\na = add(x, w)\n"
       "m = mean(a, dim=1, keepdim=true)\n"
       "n = group_norm(x, w, num_groups=1)\n"
       "y = amax(n, dim=1, keepdim=true)\noutput y\noutput m\n",
       "sm_90a/1"},
      {"one_row_normalised", "pointwise.cu",
       "input x: f32[1,32]\nparam v: f32[32]\na = abs(v)\n"
       "y = batch_norm(x, v, a)\noutput y\n"},
      // Norms of what has one channel or image, in kernels of many.
      {"norm_of_row_numbers", "row_warp.cu",
       "input x: f32[60,16]\nparam w: f32[1]\nparam v: f32[1]\n"
       "m = mean(x, dim=1, keepdim=true)\nn = batch_norm(m, w, v, eps=9)\n"
       "y = mul(x, n)\noutput y\n"},
      {"norm_of_one_image", "column_block.cu",
       "input x: f32[6,16,10,10]\ninput s: f32[1,16,10,10]\n"
       "n = group_norm(s, num_groups=4, eps=0.1)\n"
       "m = mean(x, dim=0, keepdim=true)\nt = add(n, m)\ny = mul(x, t)\n"
       "output y\n"},
      // Reductions of the same elements by another rank.
      {"rows_of_other_ranks", "row_warp_chain.cu",
       "input x: f32[6,50]\ninput z: f32[1,1,1]\na = add(x, z)\n"
       "c = mean(a, dim=1, keepdim=true)\nb = mean(x, dim=0, keepdim=true)\n"
       "e = sub(x, b)\nf = sub(a, c)\ng = mul(f, e)\noutput g\n"},
      {"norms_of_other_ranks", "reduce.cu",
       "input x: f32[8,8]\ninput z: f32[1,1,1]\na = add(x, z)\n"
       "b = group_norm(x, num_groups=2)\nc = group_norm(a, num_groups=2)\n"
       "d = mul(b, c)\noutput d\n"},
      {"rows_end_in_another_rank", "row_block.cu",
       "input x: f32[2,64,300]\ninput z: f32[1,1,1,1]\n"
       "n = group_norm(x, num_groups=2)\na = add(n, z)\n"
       "y = amax(a, dim=3)\noutput y\n"},
      // Numbers of columns that a norm reads by channel, of which there are as
      // many.
      {"column_numbers_by_channel", "reduce.cu",
       "input x: f32[5,8,8]\nparam v: f32[8]\ne = abs(v)\n"
       "m = mean(x, dim=[0,1])\ny = batch_norm(x, m, e)\noutput y\n"},
      {"chain_numbers_by_channel", "row_warp_chain.cu",
       "input x: f32[3,16,5,16]\nm = mean(x, dim=[0,1,2])\nd = sub(x, m)\n"
       "q = mul(d, d)\ns = mean(q, dim=[0,1,2])\ny = batch_norm(x, m, s)\n"
       "output y\n"},
      {"rows_team", "row_team.cu",
       "input x: f32[8,16,256,256]\ny = group_norm(x, num_groups=1)\n"
       "output y\n"},
      // More finishers, two vectors at a time.
      {"rows_team_gelu", "row_team.cu",
       "input x: f16[4,16,256,250]\nn = group_norm(x, num_groups=1)\n"
       "y = gelu(n)\noutput y\n",
       "sm_90a/30"},
      {"rows_turns", "row_block.cu",
       "input x: f32[6,1,128,130]\ny = group_norm(x, num_groups=1)\n"
       "output y\n",
       "sm_90a/4"},
      {"rows_backwards", "row_block.cu",
       "input x: f32[4,32,100,100]\np = max_pool2d(x, kernel_size=2)\n"
       "n = group_norm(p, num_groups=4)\ns = softmax(n, dim=3)\n"
       "c = softmax(s, dim=1)\ny = amax(c, dim=[2,3])\noutput y\n",
       "sm_90a/8"},
      {"backwards", "pool2d.cu",
       "input x: f32[2,8,20,24]\nm = mean(x, dim=[0,2,3], keepdim=true)\n"
       "d = sub(x, m)\np = max_pool2d(d, kernel_size=2)\n"
       "y = logsumexp(p, dim=[2,3])\noutput y\noutput d\n"},
      {"sm_80_rows", "row_block.cu",
       "input x: f32[4,32,48,48]\ny = group_norm(x, num_groups=4)\noutput y\n",
       "sm_80/8"},
  };
}

}  // namespace kiln::ptx
