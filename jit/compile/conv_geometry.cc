#include "jit/compile/conv_geometry.h"

#include <algorithm>

namespace kiln {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

}  // namespace

int64_t ConvGeometry::lead() const {
  return copies_four ? (4 - problem.padding[1] % 4) % 4 : 0;
}
int64_t ConvGeometry::halo(size_t axis) const {
  return (problem.kernel[axis] - 1) * problem.dilation[axis];
}
int64_t ConvGeometry::patch_width() const {
  const int64_t needed =
      lead() + (tile_w - 1) * problem.stride[1] + halo(1) + 1;
  return copies_four ? RoundUp(needed, 4) : needed;
}
int64_t ConvGeometry::patch() const {
  return ((tile_h - 1) * problem.stride[0] + halo(0) + 1) * patch_width();
}
int64_t ConvGeometry::rows() const { return int64_t{warps_m} * tiles_m * 16; }
int64_t ConvGeometry::positions() const {
  const int64_t last = lead() + halo(0) * patch_width() + halo(1);
  return RoundUp(std::max(patch(), rows() + last), 8);
}
int64_t ConvGeometry::channel_blocks() const {
  return CeilDiv(problem.group_outputs(), block_channels());
}
int64_t ConvGeometry::chunks() const {
  return CeilDiv(problem.group_inputs(), chunk);
}
int64_t ConvGeometry::steps() const {
  return CeilDiv(chunk * problem.taps(), 8);
}
int64_t ConvGeometry::tiles_across() const {
  return CeilDiv(problem.output[3], tile_w);
}
int64_t ConvGeometry::strips() const {
  return CeilDiv(CeilDiv(problem.output[2], tile_h), tiles_per_block);
}
int64_t ConvGeometry::blocks() const {
  return problem.output[0] * problem.groups * channel_blocks() * strips() *
         tiles_across();
}
int64_t ConvGeometry::weight_words() const {
  return steps() * (block_channels() / 8) * 32 * (splits_weight ? 4 : 2);
}
int64_t ConvGeometry::packed_bytes() const {
  return problem.groups * channel_blocks() * chunks() * weight_words() * 4;
}
int64_t ConvGeometry::patch_words() const {
  return chunk * ((patch() + 23) / 32 * 32 + 8);
}
int64_t ConvGeometry::split_words() const {
  return warpgroups > 0 ? chunk * positions() : patch_words();
}
int64_t ConvGeometry::shared_words() const {
  return patch_words() + split_stages * (splits_input ? 2 : 1) * split_words() +
         (chunks() > 1 ? 2 : 1) * weight_words() + steps() * 8;
}

int64_t ConvGeometry::Splits(int64_t group_channels) const {
  return strips() * tiles_across() *
         std::max<int64_t>(group_channels / block_channels(), 1);
}

ConvProblem ConvProblemOf(const LoweredPlan& plan, const Node& conv) {
  const auto& attributes = std::get<ConvAttributes>(conv.attributes);
  const TensorDesc& input = plan.values[ValueOf(conv.operands[0])].desc;
  const TensorDesc& weight = plan.values[ValueOf(conv.operands[1])].desc;
  ConvProblem problem;
  problem.input = AlignDims(input.dims);
  problem.output = AlignDims(plan.values[conv.results[0]].desc.dims);
  problem.groups = attributes.groups;
  problem.kernel = {weight.dims[2], weight.dims[3]};
  problem.dilation = attributes.dilation;
  problem.transposed = conv.kind == NodeKind::kConvTranspose2d;
  problem.input_type = input.dtype;
  problem.weight_type = weight.dtype;
  for (size_t i = 0; i < 2; ++i) {
    if (problem.transposed) {
      problem.insert[i] = attributes.stride[i];
      problem.padding[i] = attributes.dilation[i] * (problem.kernel[i] - 1) -
                           attributes.padding[i];
    } else {
      problem.stride[i] = attributes.stride[i];
      problem.padding[i] = attributes.padding[i];
    }
  }
  return problem;
}

}  // namespace kiln
