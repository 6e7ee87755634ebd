#include "jit/plan/canonical_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>

#include "jit/plan/op_table.h"

namespace kiln {
namespace {

// Writes "<prefix><field>=<value>" lines. Spelled out here, apart from plan
// text, so that the sugar of that text can change without changing keys.
class FieldWriter {
 public:
  FieldWriter(std::string_view prefix, std::string* out)
      : prefix_(prefix), out_(out) {}

  void Text(std::string_view field, std::string_view value) {
    fmt::format_to(std::back_inserter(*out_), "{}{}={}\n", prefix_, field,
                   value);
  }
  void Int(std::string_view field, int64_t value) {
    Text(field, fmt::format("{}", value));
  }
  void Bits(std::string_view field, float value) {
    Text(field, fmt::format("0x{:08x}", std::bit_cast<uint32_t>(value)));
  }
  void Bits(std::string_view field, std::optional<float> value) {
    if (value.has_value()) {
      Bits(field, *value);
    } else {
      Text(field, "none");
    }
  }
  void Spatial(std::string_view field, const Pair& value) {
    Text(field, fmt::format("{},{}", value[0], value[1]));
  }

  void operator()(const std::monostate&) {}
  void operator()(const ConvAttributes& a) {
    Spatial("stride", a.stride);
    Spatial("padding", a.padding);
    Spatial("output_padding", a.output_padding);
    Spatial("dilation", a.dilation);
    Int("groups", a.groups);
  }
  void operator()(const GroupNormAttributes& a) {
    Int("num_groups", a.num_groups);
    Bits("eps", a.eps);
  }
  void operator()(const BatchNormAttributes& a) { Bits("eps", a.eps); }
  void operator()(const PoolAttributes& a) {
    Spatial("kernel_size", a.kernel_size);
    Spatial("stride", a.stride);
    Spatial("padding", a.padding);
    Spatial("dilation", a.dilation);
    Int("ceil_mode", a.ceil_mode);
    Int("count_include_pad", a.count_include_pad);
    Text("divisor_override", a.divisor_override.has_value()
                                 ? fmt::format("{}", *a.divisor_override)
                                 : "none");
  }
  void operator()(const ReduceAttributes& a) {
    Text("dim", fmt::format("{}", fmt::join(a.dim, ",")));
    Int("keepdim", a.keepdim);
  }
  void operator()(const SoftmaxAttributes& a) { Int("dim", a.dim); }
  void operator()(const LeakyReluAttributes& a) {
    Bits("negative_slope", a.negative_slope);
  }
  void operator()(const GeluAttributes& a) {
    Text("approximate",
         a.approximate == GeluApproximate::kTanh ? "tanh" : "none");
  }
  void operator()(const ClampAttributes& a) {
    Bits("min", a.min);
    Bits("max", a.max);
  }
  void operator()(const SoftplusAttributes& a) {
    Bits("beta", a.beta);
    Bits("threshold", a.threshold);
  }
  void operator()(const EluAttributes& a) { Bits("alpha", a.alpha); }
  void operator()(const CastAttributes& a) {
    Text("dtype", DataTypeName(a.dtype));
  }

 private:
  std::string_view prefix_;
  std::string* out_;
};

void WriteOperand(size_t index, const Operand& operand, FieldWriter* writer) {
  const std::string field = fmt::format("operand{}", index);
  if (const auto* value = std::get_if<ValueId>(&operand)) {
    writer->Text(field, fmt::format("value {}", value->index));
  } else if (const float* constant = std::get_if<float>(&operand)) {
    writer->Bits(field, *constant);
  } else {
    writer->Text(field, "none");
  }
}

}  // namespace

std::string CanonicalOpFields(const Op& op, std::string_view prefix) {
  std::string out;
  FieldWriter writer(prefix, &out);
  writer.Text("kind", OpName(op.kind));
  for (size_t i = 0; i < op.operands.size(); ++i) {
    WriteOperand(i, op.operands[i], &writer);
  }
  std::visit(writer, op.attributes);
  return out;
}

}  // namespace kiln
