#ifndef KILN_JIT_COMPILE_CONV_PROBLEM_H_
#define KILN_JIT_COMPILE_CONV_PROBLEM_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "jit/compile/lowered_plan.h"

namespace kiln {

// A convolution, ordinary or transposed, as conv_tile.cuh sees it: a
// transposed one is the convolution of an input with zeros inserted by the
// mirrored filter.
struct ConvProblem {
  Dims4 input = {1, 1, 1, 1};
  Dims4 output = {1, 1, 1, 1};
  int64_t groups = 1;
  // Groups of the convolution that each of `groups` consists of; those of two
  // different ones have weights of 0 (conv_joined.cuh).
  int64_t joined = 1;
  Pair kernel = {1, 1};
  Pair stride = {1, 1};
  Pair padding = {0, 0};  // may be negative
  Pair dilation = {1, 1};
  Pair insert = {1, 1};  // distance of the input's pixels
  bool transposed = false;
  // Of a transposed convolution that is computed as an ordinary one: the phases
  // of each channel of its result, which are channels of `output`; by how many
  // pixels their first places begin before the result, and its extents
  // (PhasesAsChannels).
  Pair channel_phases = {1, 1};
  Pair before_result = {0, 0};
  Pair result_extent = {0, 0};
  bool wraps_rows = false;    // as Node::wraps_rows
  int64_t columns_apart = 1;  // as Node::columns_apart
  // Pixels of one of the result's images, where these lie apart but those of
  // the input side by side, as one (join_images.h); 0: as they are.
  int64_t split_pixels = 0;
  DataType input_type = DataType::kF32;
  bool input_is_laid = false;  // by the kernel that makes it (lay_results.h)
  DataType weight_type = DataType::kF32;

  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t group_inputs() const { return input[1] / groups; }
  int64_t group_outputs() const { return output[1] / groups; }
  // Searches for tiles ask these often: not by comparing arrays.
  bool has_stride() const { return stride[0] != 1 || stride[1] != 1; }
  bool has_insert() const { return insert[0] != 1 || insert[1] != 1; }
  // Whether its operands or results lie as only warpgroups' kernels know.
  bool lies_apart() const {
    return wraps_rows || split_pixels > 0 || columns_apart > 1;
  }
  // One for each result, a filter's or that of each phase of a transposed
  // filter as large as its stride, at every pixel that there is.
  bool has_one_tap() const {
    const bool is_dilated = taps() > 1 && dilation != Pair{1, 1};
    return kernel == insert && !has_stride() && !is_dilated &&
           padding == Pair{kernel[0] - 1, kernel[1] - 1};
  }
  bool has_channel_phases() const {
    return channel_phases[0] != 1 || channel_phases[1] != 1;
  }
  // Of the result, where `output` has its phases as channels or not.
  Dims4 result() const;
  // Of warpgroups: whether they multiply the operands as they are stored.
  bool takes_as_stored() const { return has_halves() && !scales_few_halves(); }
  // Operands of 16 bits are scaled all the same where octets then have more
  // columns of the filter.
  bool scales_few_halves() const;
  // Of how many neighbouring columns of the filter an octet has all channels,
  // where these are few: 1 if it has channels of one.
  int64_t octet_columns() const;
  // Whether producers bring pairs of these, which lie in one access, and the
  // first column of the filter is alone in its octet (conv_column_pairs.cuh).
  bool pairs_columns() const;
  friend bool operator==(const ConvProblem&, const ConvProblem&) = default;

 private:
  bool has_halves() const {
    return input_type == weight_type && input_type != DataType::kF32;
  }
};

// The problem itself, and, where it has groups of few channels, those of
// several such groups each.
std::vector<ConvProblem> JoinedProblems(const ConvProblem& problem);

// A transposed convolution, whose filter its stride divides, as an ordinary one
// of stride 1 with all phases of a place as channels: in
//
//   y[c, s i + r - p] = sum over j, m of x[j, i - m] w[j, c, s m + r]
//
// all phases r of a place i read the same pixels, so c s + r are the channels
// of a filter of K / s taps. Places begin p % s pixels before the result, so
// that there may be one more of them than the input has pixels. Null for
// others, for filters of one tap that have no padding (has_one_tap), and for
// two phases, which take as long as tiles that have both (three plans on an
// H200).
std::optional<ConvProblem> PhasesAsChannels(const ConvProblem& problem);

// Whether a convolution's input may be laid down before it (lay_lines.cu): it
// is not multiplied as it is stored, by a filter of one tap, has a pixel for
// each result, for scales of others are not laid down, and so many channels, as
// the results of a pixel are, that blocks would bring it several times.
bool MayLayLines(const ConvProblem& problem);

ConvProblem ConvProblemOf(const LoweredPlan& plan, const Node& conv);

// Whether the images of a convolution's input lie side by side, as one, and
// those of its result apart.
bool SplitsImages(const LoweredPlan& plan, const Node& conv);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_CONV_PROBLEM_H_
