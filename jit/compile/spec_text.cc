#include "jit/compile/spec_text.h"

#include "fmt/format.h"
#include "jit/compile/element_code.h"

namespace kiln {
namespace {

// The largest position that fits in an int with a block's stride behind it.
constexpr int64_t kMaxNarrow = (int64_t{1} << 31) - (int64_t{1} << 24);

}  // namespace

std::vector<std::string> ShapeText(const std::string& name, const Dims& dims) {
  const Dims4 d = AlignDims(dims);
  return {fmt::format("struct {} {{", name),
          fmt::format("  static constexpr Index kN = {}, kC = {}, kH = {}, "
                      "kW = {};",
                      d[0], d[1], d[2], d[3]),
          "};"};
}

std::string PairText(const std::string& name, const Pair& pair) {
  return fmt::format("static constexpr Index k{0}H = {1}, k{0}W = {2};", name,
                     pair[0], pair[1]);
}

std::string_view RowIndexType(int64_t count) {
  return count > kMaxNarrow ? "long long" : "int";
}

std::string_view ReducerName(OpKind op) {
  switch (op) {
    case OpKind::kSum:
      return "Sum";
    case OpKind::kMean:
      return "Mean";
    case OpKind::kAmax:
      return "Amax";
    case OpKind::kAmin:
      return "Amin";
    case OpKind::kLogSumExp:
      return "LogSumExp";
    case OpKind::kSoftmax:
      return "SoftmaxSum";
    default:
      return "Moments";
  }
}

std::vector<std::string> ReducerResults(const Node& node, int64_t steps,
                                        const std::string& state) {
  if (node.op == OpKind::kGroupNorm) {
    const auto& norm = std::get<GroupNormAttributes>(node.attributes);
    return {state + ".mean",
            fmt::format("kiln::ReciprocalStd({}.Variance(), {})", state,
                        FloatLiteral(norm.eps))};
  }
  if (node.op == OpKind::kSoftmax) {
    return {state + ".largest", state + ".Denominator()"};
  }
  return {fmt::format("{}.Value({})", state,
                      FloatLiteral(static_cast<float>(steps)))};
}

}  // namespace kiln
