#ifndef KILN_JIT_COMPILE_LOWERED_PLAN_H_
#define KILN_JIT_COMPILE_LOWERED_PLAN_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "jit/compile/direct_tile.h"
#include "jit/compile/value_range.h"
#include "jit/plan/canonical.h"

namespace kiln {

// Extents with 1s in front, so that every tensor has axes n, c, h, w.
using Dims4 = std::array<int64_t, 4>;
Dims4 AlignDims(const Dims& dims);

// What computes a node: a kernel template of its own, or straight-line code
// in whichever kernel is at hand.
enum class NodeKind : uint8_t {
  kPointwise,
  kConv2d,
  kConvTranspose2d,
  kPool2d,
  kReduce,
  kUnfold,      // unfold_patches.h
  kTurn,        // gather_pixels.h
  kJoin,        // join_images.h
  kMosaic,      // mosaic_images.h
  kCut,         // the same
  kSumColumns,  // part_columns.h
};

// Which errors of a value count; of the first three the strictest first.
enum class Exactness : uint8_t {
  kUlps,       // those in its last place
  kBesideOne,  // those that show beside 1
  kTf32,       // those that show beside 1 of which it has 11 bits
  kHalf,       // those that show where it is rounded to 16 bits
  kSmooth,     // those that neighbours do not share, and of others 15 bits
};

// A tensor of the lowered plan. The plan's values come first, under the same
// index; behind them stand the statistics that lowering adds, and what
// RoundedValues rounds, which takes the place of the value that it is made of.
struct LoweredValue {
  std::string name;  // "i0", "v3", "v3_mean": valid in C++
  // dtype: of inputs, as bound; of casts, what they round to; else f32.
  TensorDesc desc;
  int producer = -1;      // index into LoweredPlan::nodes; -1 for inputs
  int view_of = -1;       // an input that is this tensor by other dims
  ValueRange range = {};  // FindRanges fills it in
  Exactness exactness = Exactness::kUlps;  // and this, FindDemands
  bool laid = false;  // as lines of halves, and nothing else: lay_results.h
};

// A step that is either a barrier of its own or pointwise. The operands are:
//   pointwise  those of the op; group_norm: input, mean, rstd, weight, bias;
//              softmax: input, largest, sum
//   kUnfold    input; attributes are those of a pooling of the same windows
//   kTurn      input; of [N, ...] a row for each image, or of [1, O, ...] one
//              for each channel, becomes a column
//   kJoin      input; of [N, C, H, W] the result is [1, C, N, H W]
//   kMosaic    input; attributes are those of a pooling: images of the input
//              are the first windows of the result's, from left to right
//   kCut       input; the other way
//   kSumColumns  input, bias; attributes are the convolution's: of [N, C K, H,
//              W] the result is [N, C, H, OW]
//   kReduce    input. Results of group_norm: mean, rstd; of softmax: largest,
//              sum
//   others     those of the op
struct Node {
  NodeKind kind = NodeKind::kPointwise;
  OpKind op = OpKind::kRelu;
  Attributes attributes;
  std::vector<Operand> operands;  // ValueIds index LoweredPlan::values
  std::vector<int> results;       // of equal dims
  std::string text;               // "v1 = relu(v0)"; for people
  // Of a kConv2d whose filter has one row: the input's rows, and the result's,
  // are parts of one, each beginning where the one above ends (fold_signals.h).
  bool wraps_rows = false;
  int64_t across = 1;  // of a kMosaic or kCut: images side by side
  // Of a kConv2d of one tap: the extents that its images are taken to have, of
  // as many pixels as they have (reshape_images.h).
  std::optional<Pair> image = std::nullopt;
  // Of a kConv2d: so many channels of the result are columns of one filter,
  // whose weights lie side by side (part_columns.h).
  int64_t columns_apart = 1;
  // Of a kConv2d with few results, images or channels, or of rows that are
  // multiplied as they lie: how a kernel does it that packs no weights
  // (direct_conv.h).
  std::optional<DirectTile> direct = std::nullopt;

  bool Reads(int value) const;
  // Whether it reads nothing but such values, and literals.
  bool ReadsOnly(const std::function<bool(int)>& is_in_set) const;
  bool IsConvolution() const;  // transposed or not
  bool IsNorm() const;         // of a group or a batch, or a part of it
  bool IsMove() const;         // of elements, as they are
  bool IsMosaicMove() const;   // kMosaic or kCut
};

struct LoweredPlan {
  int num_inputs = 0;  // the first of `values`
  std::vector<LoweredValue> values;
  std::vector<Node> nodes;  // in topological order
  std::vector<PlanOutput> outputs;

  bool AnyIsOutput(const std::vector<int>& of_values) const;
  // Operands and outputs that are `value`.
  int64_t CountUses(int value) const;

  // Appends a value that nothing makes yet; returns its index.
  int AddValue(LoweredValue value);
  // The same of a value like `like`, of other dims and with `suffix` to its
  // name.
  int AddLike(int like, const char* suffix, const Dims& dims);
  // Appends a node, which makes its results from now on.
  void AddNode(Node node);
  // Appends a cast of a value; returns its result.
  int AddCast(int value, DataType type);
  // Appends a move, but a kUnfold, of one value into another.
  void AddMove(NodeKind kind, int from, int to, Attributes attributes = {});
};

// Splits group_norm into its statistics (a reduction) and a pointwise rest,
// and softmax likewise; makes pooling of whole images a reduction, but behind a
// convolution; adds a cast behind each of RoundedValues; leaves everything else
// as it is.
LoweredPlan Lower(const CanonicalPlan& plan);

// The value in an operand's place, or -1 for a constant or nothing.
int ValueOf(const Operand& operand);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_LOWERED_PLAN_H_
