// Longer than 400 lines because one class writes all that an element needs.
#include "jit/compile/element_code.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>

#include "fmt/format.h"
#include "jit/compile/call_rewrites.h"
#include "jit/compile/conv_fusion.h"
#include "jit/compile/conv_states.h"
#include "jit/compile/element_index.h"
#include "jit/compile/pointwise_call.h"
#include "jit/compile/spec_text.h"

namespace kiln {
namespace {

constexpr std::string_view kOfChannel = "channel.";

bool IsInChannel(const std::string& text) {
  return text.starts_with(kOfChannel);
}

// What elements read as `text`, where the channel's own values are computed.
std::string InChannel(const std::string& text) {
  return IsInChannel(text) ? text.substr(kOfChannel.size()) : text;
}

// " * 0x1.8p+0f", what a product with `factor` ends in.
std::string Times(float factor) {
  return factor == 1.0f ? "" : " * " + FloatLiteral(factor);
}

// Whether `line` has the name `text`, and not one that only begins so.
bool Mentions(const std::string& line, const std::string& text) {
  for (size_t at = line.find(text); at != std::string::npos;
       at = line.find(text, at + 1)) {
    const size_t end = at + text.size();
    const char next = end < line.size() ? line[end] : ' ';
    if (std::isalnum(static_cast<unsigned char>(next)) == 0 && next != '_') {
      return true;
    }
  }
  return false;
}

}  // namespace

ElementCode::ElementCode(const Schedule& schedule, const Dims& domain,
                         KernelTensors* tensors)
    : schedule_(schedule), domain_(AlignDims(domain)), tensors_(tensors) {}

void ElementCode::Define(int value) {
  const Dims& dims = schedule_.lowered.values[value].desc.dims;
  locals_[{value, IndexOf(AlignDims(dims), domain_)}] = NameOf(value);
}

std::string ElementCode::NameOf(int value) const {
  const std::string& name = schedule_.lowered.values[value].name;
  return folded_.Of(value) == 1.0f ? name : name + "_scaled";
}

void ElementCode::DefineAs(int value, std::string text) {
  everywhere_[value] = std::move(text);
}

void ElementCode::DefineDivisor(int value, std::string text) {
  divisors_[value] = std::move(text);
}

void ElementCode::Line(std::string line) { lines_.push_back(std::move(line)); }

void ElementCode::Assign(const std::string& name,
                         const std::string& expression) {
  AssignTo(name, expression, &lines_);
}

void ElementCode::AssignTo(const std::string& name,
                           const std::string& expression,
                           std::vector<std::string>* lines) {
  constexpr size_t kColumns = 76;  // behind the indentation of a member's body
  const std::string head = fmt::format("const float {} =", name);
  if (head.size() + expression.size() + 2 <= kColumns) {
    lines->push_back(head + " " + expression + ";");
  } else {
    lines->push_back(head);
    lines->push_back("    " + expression + ";");
  }
}

// Returns the text by which elements read it.
std::string ElementCode::AssignChannel(const std::string& name,
                                       const std::string& expression) {
  AssignTo(name, expression, &channel_lines_);
  channel_names_.push_back(name);
  return std::string(kOfChannel) + name;
}

std::vector<std::string> ElementCode::ChannelFields() const {
  std::vector<std::string> fields;
  for (const std::string& name : channel_names_) {
    const std::string text = std::string(kOfChannel) + name;
    const bool is_read = std::any_of(
        lines_.begin(), lines_.end(),
        [&](const std::string& line) { return Mentions(line, text); });
    if (is_read || kept_.count(name) > 0) fields.push_back(name);
  }
  return fields;
}

std::string ElementCode::ChannelLocal(int value) {
  const Dims& dims = schedule_.lowered.values[value].desc.dims;
  const bool is_vector = dims.size() == 1 && dims[0] == domain_[1];
  return InChannel(is_vector ? LocalAt(value, std::string(AxisOf(4, 1)))
                             : Local(value));
}

void ElementCode::KeepInChannel(const std::string& name,
                                const std::string& expression) {
  AssignChannel(name, expression);
  kept_.insert(name);
}

void ElementCode::Compute(const Node& node) {
  const int result = node.results[0];
  if (folded_.skipped.count(result) > 0) return;
  const std::string expression = Expression(node);
  Assign(NameOf(result), expression);
  Define(result);
}

std::string ElementCode::Local(int value) {
  const Dims& dims = schedule_.lowered.values[value].desc.dims;
  return LocalAt(value, IndexOf(AlignDims(dims), domain_));
}

std::string ElementCode::LocalTimes(int value, float factor) {
  const std::string local = Local(value);
  if (folded_.Of(value) == factor) return local;
  return fmt::format("{} * {}", FloatLiteral(factor), local);
}

std::string ElementCode::LocalAt(int value, const std::string& index) {
  const auto known = everywhere_.find(value);
  if (known != everywhere_.end()) return known->second;
  std::string& local = locals_[{value, index}];
  if (!local.empty()) return local;
  local = schedule_.lowered.values[value].name;
  const auto others = std::count_if(
      locals_.begin(), locals_.end(),
      [&](const auto& entry) { return entry.first.first == value; });
  if (others > 1) local += fmt::format("_{}", others);
  if (separates_elements_ && index == "at.i") {
    read_beside_.push_back({local, tensors_->Read(value),
                            StorageTypeName(schedule_.homes[value]->dtype)});
    return local = "beside." + local;
  }
  const std::string load =
      LoadAs(value, schedule_.lowered.values[value].name, index);
  if (separates_ && IsOfChannel(index)) {
    local = AssignChannel(local, load);
  } else {
    Assign(local, load);
  }
  return local;
}

std::string ElementCode::LoadLocal(int value, const std::string& name,
                                   const std::string& index, float factor) {
  const std::string load = LoadAs(value, name, index) + Times(factor);
  if (separates_ && IsOfChannel(index)) return AssignChannel(name, load);
  Assign(name, load);
  return name;
}

std::string ElementCode::LoadAs(int value, const std::string& name,
                                const std::string& index) {
  const std::string tensor = tensors_->Read(value, name);
  Note(tensor, index);
  const bool is_once = streams_elements_ && index == "at.i";
  return fmt::format("kiln::{}({}, {})", is_once ? "LoadOnce" : "Load", tensor,
                     index);
}

void ElementCode::Note(const std::string& tensor, const std::string& index) {
  const std::string name = tensor.substr(tensor.find('.') + 1);
  const auto [access, is_new] = accesses_.emplace(name, index);
  if (!is_new && access->second != index) access->second.clear();
}

void ElementCode::StoreTo(const Store& store) {
  const std::string local = Local(store.value);
  const std::string tensor = tensors_->Write(store);
  Note(tensor, "at.i");
  Line(fmt::format("kiln::Store({}, at.i, {});", tensor, local));
}

void ElementCode::StoreTo(const Store& store, const std::string& condition) {
  const std::string local = Local(store.value);
  Line(fmt::format("kiln::StoreIf({}, {}, at.i, {});", condition,
                   tensors_->Write(store), local));
}

void ElementCode::StreamTo(const Store& store, const std::string& condition) {
  const std::string local = Local(store.value);
  Line(fmt::format("kiln::StreamIf({}, {}, at.i, {});", condition,
                   tensors_->Write(store), local));
}

std::string ElementCode::OperandText(const Operand& operand) {
  if (const float* constant = std::get_if<float>(&operand)) {
    return FloatLiteral(*constant);
  }
  return Local(ValueOf(operand));
}

std::string ElementCode::ChannelVector(const Operand& operand, const Node& node,
                                       const char* otherwise) {
  const int value = ValueOf(operand);
  if (value < 0) return otherwise;
  // The vector of a matrix of one row is as large as that.
  if (AlignDims(schedule_.lowered.values[value].desc.dims) == domain_) {
    return Local(value);
  }
  return LocalAt(value, std::string(CoordinateOf(node, 1)));
}

// Along an axis of what `node` normalises, which may be broadcast along it.
std::string_view ElementCode::CoordinateOf(const Node& node,
                                           size_t axis) const {
  const Dims& dims =
      schedule_.lowered.values[ValueOf(node.operands[0])].desc.dims;
  const size_t aligned = domain_.size() - dims.size() + axis;
  const bool is_broadcast = dims[axis] == 1 && domain_[aligned] > 1;
  return is_broadcast ? "0" : AxisOf(dims.size(), axis);
}

// A statistic of the group that the element belongs to.
std::string ElementCode::GroupValue(int value, const Node& node) {
  const auto& norm = std::get<GroupNormAttributes>(node.attributes);
  const Dims& dims =
      schedule_.lowered.values[ValueOf(node.operands[0])].desc.dims;
  const int64_t channels_per_group = dims[1] / norm.num_groups;
  const std::string index =
      fmt::format("{} * {} + {} / {}", CoordinateOf(node, 0), norm.num_groups,
                  CoordinateOf(node, 1), channels_per_group);
  if (const Kernel* const kernel = KernelThatLeaves(schedule_, value)) {
    MergeStates(*kernel, node, index);
  }
  return LocalAt(value, index);
}

// Computes the statistics of group `index` for a channel from the states that
// `kernel` has left, or where it holds images from `state`.
void ElementCode::MergeStates(const Kernel& kernel, const Node& node,
                              const std::string& index) {
  const Node& reduce = schedule_.lowered.nodes[kernel.group.tail];
  if (locals_.count({reduce.results[0], index}) > 0) return;
  const std::string& name = schedule_.lowered.values[node.results[0]].name;
  std::string state = "state";
  if (!kernel.conv->holds_images()) {
    const std::string states = tensors_->Add(
        {name + "_states", "kiln::Moments", false, *kernel.partials});
    const int64_t count = SplitsOf(schedule_, kernel);
    state = name + "_state";
    channel_lines_.push_back(fmt::format("const kiln::Moments {} =", state));
    channel_lines_.push_back(fmt::format("    kiln::MergedStates<{}>({}, {});",
                                         count, states, index));
  }
  const std::vector<std::string> results = ReducerResults(reduce, 0, state);
  for (size_t i = 0; i < results.size(); ++i) {
    const int result = reduce.results[i];
    locals_[{result, index}] =
        AssignChannel(schedule_.lowered.values[result].name, results[i]);
  }
}

std::string ElementCode::NormalizeCall(const Node& node) {
  const std::string x = Local(ValueOf(node.operands[0]));
  const std::string mean = GroupValue(ValueOf(node.operands[1]), node);
  const std::string rstd = GroupValue(ValueOf(node.operands[2]), node);
  const std::string weight = ChannelVector(node.operands[3], node, "1.0f");
  const std::string bias = ChannelVector(node.operands[4], node, "0.0f");
  return Normalized(node, x, mean, rstd, weight, bias);
}

std::string ElementCode::BatchNormCall(const Node& node) {
  const auto& norm = std::get<BatchNormAttributes>(node.attributes);
  const std::string x = Local(ValueOf(node.operands[0]));
  const std::string mean = ChannelVector(node.operands[1], node, "");
  const std::string variance = ChannelVector(node.operands[2], node, "");
  const std::string weight = ChannelVector(node.operands[3], node, "1.0f");
  const std::string bias = ChannelVector(node.operands[4], node, "0.0f");
  const int result = node.results[0];
  std::string rstd = schedule_.lowered.values[result].name + "_rstd";
  const std::string expression =
      fmt::format("kiln::ReciprocalStd({}, {})", InChannel(variance),
                  FloatLiteral(norm.eps));
  if (IsInChannel(variance)) {
    rstd = AssignChannel(rstd, expression);
  } else {
    Assign(rstd, expression);
  }
  return Normalized(node, x, mean, rstd, weight, bias);
}

// Apart, scale and shift come once for each channel, as in PyTorch.
std::string ElementCode::Normalized(const Node& node, const std::string& x,
                                    const std::string& mean,
                                    const std::string& rstd,
                                    const std::string& weight,
                                    const std::string& bias) {
  if (!IsInChannel(mean) || !IsInChannel(rstd)) {
    return fmt::format("kiln::Normalize({}, {}, {}, {}, {})", x, mean, rstd,
                       weight, bias);
  }
  const std::string name = schedule_.lowered.values[node.results[0]].name;
  const float factor = folded_.Of(node.results[0]);
  const float of_input = folded_.Of(ValueOf(node.operands[0]));
  const std::string scale =
      AssignChannel(name + "_scale",
                    fmt::format("{} * {}{}", InChannel(rstd), InChannel(weight),
                                Times(factor / of_input)));
  const std::string shift = AssignChannel(
      name + "_shift",
      fmt::format("fmaf(-{}{}, {}_scale, {}{})", InChannel(mean),
                  Times(of_input), name, InChannel(bias), Times(factor)));
  return fmt::format("fmaf({}, {}, {})", x, scale, shift);
}

std::string ElementCode::Expression(const Node& node) {
  if (node.op == OpKind::kGroupNorm) return NormalizeCall(node);
  if (node.op == OpKind::kBatchNorm) return BatchNormCall(node);
  const std::string folded = FoldedExpression(node);
  if (!folded.empty()) return folded;
  std::vector<std::string> operands;
  for (const Operand& operand : node.operands) {
    operands.push_back(OperandText(operand));
  }
  if (node.op == OpKind::kDiv) {
    const auto divisor = divisors_.find(ValueOf(node.operands[1]));
    if (divisor != divisors_.end()) {
      const Exactness exactness =
          schedule_.lowered.values[node.results[0]].exactness;
      return fmt::format(
          "kiln::{}({}, {})",
          exactness == Exactness::kHalf ? "DivNearlyBy" : "DivBy", operands[0],
          divisor->second);
    }
  }
  const std::optional<CallRewrite> rewrite =
      RewriteCall(schedule_.lowered, node, operands);
  return rewrite.has_value()
             ? rewrite->expression
             : PointwiseCall(node.op, node.attributes, operands);
}

// Of a node that takes or gives a factor; else empty.
std::string ElementCode::FoldedExpression(const Node& node) {
  const int result = node.results[0];
  const float factor = folded_.Of(result);
  if (factor != 1.0f && node.op == OpKind::kAdd) {
    return FoldedSum(node, factor);
  }
  const int operand = ValueOf(node.operands[0]);
  const bool has_constant = folded_.without_constant.count(result) == 0;
  const std::string literal = FloatLiteral(factor);
  if (folded_.skipped.count(operand) > 0) {
    const int tanh = schedule_.lowered.values[operand].producer;
    const int input = ValueOf(schedule_.lowered.nodes[tanh].operands[0]);
    const std::string x = LocalTimes(input, kTwoLog2E);
    return has_constant
               ? fmt::format("kiln::HardswishOfTanh({})", x)
               : fmt::format("kiln::HardswishOfTanhLess({}, {})", x, literal);
  }
  if (!has_constant) {
    return fmt::format("kiln::TanhLessOne({}, {})",
                       LocalTimes(operand, kTwoLog2E), literal);
  }
  if (factor != 1.0f) {
    return fmt::format("kiln::HardswishInside({}, {})", Local(operand),
                       literal);
  }
  if (folded_.Of(operand) == 1.0f) return "";
  return fmt::format("kiln::TanhOfScaled({})", Local(operand));
}

// Multiplies only what has no factor yet.
std::string ElementCode::FoldedSum(const Node& node, float factor) {
  std::vector<std::string> with;
  std::string without;
  for (const Operand& operand : node.operands) {
    const std::string text = OperandText(operand);
    if (ValueOf(operand) >= 0 && folded_.Of(ValueOf(operand)) == factor) {
      with.push_back(text);
    } else {
      without = text;
    }
  }
  if (without.empty()) return fmt::format("{} + {}", with[0], with[1]);
  return fmt::format("fmaf({}, {}, {})", without, FloatLiteral(factor),
                     with[0]);
}

std::string FloatLiteral(float value) {
  if (!std::isfinite(value)) {
    return fmt::format("__int_as_float(0x{:08x})",
                       std::bit_cast<uint32_t>(value));
  }
  return fmt::format("{:a}f", value);
}

}  // namespace kiln
