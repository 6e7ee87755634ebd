#include <algorithm>

#include "jit/plan/reference_ops.h"

namespace kiln {
namespace {

// A range of indices, empty if end <= begin.
struct Range {
  int64_t begin;
  int64_t end;
};

int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

// The i in [0, count) with 0 <= i * stride + offset < extent.
Range Inside(int64_t count, int64_t stride, int64_t offset, int64_t extent) {
  return {std::max<int64_t>(0, CeilDiv(-offset, stride)),
          std::min(count, CeilDiv(extent - offset, stride))};
}

// Extents of one convolution, of either kind.
struct Shape {
  Shape(const ConvAttributes& conv, const ReferenceTensor& input,
        const ReferenceTensor& weight, const ReferenceTensor& result)
      : channels(input.dims[1]),
        height(input.dims[2]),
        width(input.dims[3]),
        kernel_height(weight.dims[2]),
        kernel_width(weight.dims[3]),
        out_channels(result.dims[1]),
        out_height(result.dims[2]),
        out_width(result.dims[3]),
        group_channels(channels / conv.groups),
        group_out_channels(out_channels / conv.groups) {}

  int64_t channels, height, width;
  int64_t kernel_height, kernel_width;
  int64_t out_channels, out_height, out_width;
  int64_t group_channels, group_out_channels;
};

// One output plane at a time: fills it with the bias and adds to its rows.
// `add_to_row(n, out_channel, y, row)` adds every product to output row y.
template <typename AddToRow>
bool ForEachPlane(const Shape& shape, const ReferenceTensor* bias,
                  const ReferenceWorkers& workers, ReferenceTensor* result,
                  const AddToRow& add_to_row) {
  const int64_t planes = result->dims[0] * shape.out_channels;
  return workers.Run(planes, 1, [&](int64_t plane, int64_t) {
    const int64_t n = plane / shape.out_channels;
    const int64_t out_channel = plane % shape.out_channels;
    const double start = bias == nullptr ? 0.0 : bias->data[out_channel];
    for (int64_t y = 0; y < shape.out_height; ++y) {
      double* const row =
          &result->data[(plane * shape.out_height + y) * shape.out_width];
      std::fill_n(row, shape.out_width, start);
      add_to_row(n, out_channel, y, row);
    }
  });
}

}  // namespace

// output[n, o, y, x] = bias[o] + sum over c, i, j of weight[o, c, i, j] *
// input[n, c, y * stride + i * dilation - padding, likewise x].
bool ReferenceConv(const Op& op, ReferenceOperands operands,
                   const ReferenceWorkers& workers, ReferenceTensor* result) {
  const auto& conv = std::get<ConvAttributes>(op.attributes);
  const Shape shape(conv, *operands[0], *operands[1], *result);
  const double* const input = operands[0]->data.get();
  const double* const weight = operands[1]->data.get();

  const auto add_tap = [&](const double* from, double w, int64_t j,
                           double* row) {
    const int64_t offset = j * conv.dilation[1] - conv.padding[1];
    const int64_t stride = conv.stride[1];
    const Range x = Inside(shape.out_width, stride, offset, shape.width);
    if (stride == 1) {
      for (int64_t i = x.begin; i < x.end; ++i) row[i] += w * from[i + offset];
    } else {
      for (int64_t i = x.begin; i < x.end; ++i) {
        row[i] += w * from[i * stride + offset];
      }
    }
  };
  const auto add_to_row = [&](int64_t n, int64_t o, int64_t y, double* row) {
    const int64_t first = n * shape.channels +
                          o / shape.group_out_channels * shape.group_channels;
    const int64_t top = y * conv.stride[0] - conv.padding[0];
    const Range taps =
        Inside(shape.kernel_height, conv.dilation[0], top, shape.height);
    for (int64_t c = 0; c < shape.group_channels; ++c) {
      for (int64_t i = taps.begin; i < taps.end; ++i) {
        const int64_t source = top + i * conv.dilation[0];
        const double* const from =
            input + ((first + c) * shape.height + source) * shape.width;
        const double* const w =
            weight +
            ((o * shape.group_channels + c) * shape.kernel_height + i) *
                shape.kernel_width;
        for (int64_t j = 0; j < shape.kernel_width; ++j) {
          add_tap(from, w[j], j, row);
        }
      }
    }
  };
  return ForEachPlane(shape, operands[2], workers, result, add_to_row);
}

// The transpose of the convolution above: input[n, c, y, x] adds
// weight[c, o, i, j] times itself to
// output[n, o, y * stride + i * dilation - padding, likewise x].
bool ReferenceConvTranspose(const Op& op, ReferenceOperands operands,
                            const ReferenceWorkers& workers,
                            ReferenceTensor* result) {
  const auto& conv = std::get<ConvAttributes>(op.attributes);
  const Shape shape(conv, *operands[0], *operands[1], *result);
  const double* const input = operands[0]->data.get();
  const double* const weight = operands[1]->data.get();

  const auto add_tap = [&](const double* from, double w, int64_t j,
                           double* row) {
    const int64_t offset = j * conv.dilation[1] - conv.padding[1];
    const int64_t stride = conv.stride[1];
    const Range x = Inside(shape.width, stride, offset, shape.out_width);
    if (stride == 1) {
      for (int64_t i = x.begin; i < x.end; ++i) row[i + offset] += w * from[i];
    } else {
      for (int64_t i = x.begin; i < x.end; ++i) {
        row[i * stride + offset] += w * from[i];
      }
    }
  };
  const auto add_to_row = [&](int64_t n, int64_t o, int64_t y, double* row) {
    const int64_t group = o / shape.group_out_channels;
    const int64_t o_in_group = o % shape.group_out_channels;
    for (int64_t i = 0; i < shape.kernel_height; ++i) {
      const int64_t scaled = y + conv.padding[0] - i * conv.dilation[0];
      if (scaled < 0 || scaled % conv.stride[0] != 0) continue;
      const int64_t source = scaled / conv.stride[0];
      if (source >= shape.height) continue;
      for (int64_t k = 0; k < shape.group_channels; ++k) {
        const int64_t c = group * shape.group_channels + k;
        const double* const from =
            input +
            ((n * shape.channels + c) * shape.height + source) * shape.width;
        const double* const w =
            weight +
            ((c * shape.group_out_channels + o_in_group) * shape.kernel_height +
             i) *
                shape.kernel_width;
        for (int64_t j = 0; j < shape.kernel_width; ++j) {
          add_tap(from, w[j], j, row);
        }
      }
    }
  };
  return ForEachPlane(shape, operands[2], workers, result, add_to_row);
}

}  // namespace kiln
