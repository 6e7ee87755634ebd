#include "tests/jit/plan/plan_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "jit/plan/validate.h"

namespace kiln {

Plan PlanGenerator::Next() {
  plan_ = Plan();
  input_descs_.clear();
  op_descs_.clear();
  plan_.grade = random_.Pick({Grade::kFp32, Grade::kTf32});
  const size_t op_count = random_.Int(1, options_.max_ops);
  while (plan_.ops.size() < op_count && plan_.inputs.size() + 5 < kMaxInputs) {
    const auto ops = AllOps();
    TryAddOp(ops[random_.Int(0, static_cast<int64_t>(ops.size()) - 1)]);
  }
  if (plan_.inputs.empty()) NewActivation(1, 4);
  AddOutputs();
  return plan_;
}

PlanGenerator::Source PlanGenerator::AddInput(TensorDesc desc, InputRole role) {
  const int index = static_cast<int>(plan_.inputs.size());
  for (Op& op : plan_.ops) {
    for (Operand& operand : op.operands) {
      auto* const value = std::get_if<ValueId>(&operand);
      if (value != nullptr && value->index >= index) ++value->index;
    }
  }
  plan_.inputs.push_back({AnyName(), desc, role});
  input_descs_.push_back(std::move(desc));
  return {true, index};
}

PlanGenerator::Source PlanGenerator::NewActivation(int min_rank, int max_rank) {
  TensorDesc desc{AnyType(), {}};
  const int64_t rank = random_.Int(min_rank, max_rank);
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t largest = i < 2 ? 6 : 9;
    desc.dims.push_back(random_.OneIn(6) ? 1 : random_.Int(1, largest));
  }
  return AddInput(
      desc, random_.OneIn(4) ? InputRole::kParameter : InputRole::kActivation);
}

// A value of a fitting rank, results of late ops preferred, or a new input.
PlanGenerator::Source PlanGenerator::AnySource(int min_rank, int max_rank) {
  std::vector<Source> fitting;
  const auto add = [&](const std::vector<TensorDesc>& descs, bool is_input) {
    for (size_t i = 0; i < descs.size(); ++i) {
      const int rank = static_cast<int>(descs[i].dims.size());
      if (rank < min_rank || rank > max_rank) continue;
      fitting.push_back({is_input, static_cast<int>(i)});
    }
  };
  add(input_descs_, true);
  add(op_descs_, false);
  if (fitting.empty() || random_.OneIn(6)) {
    return NewActivation(min_rank, max_rank);
  }
  if (random_.OneIn(2)) return fitting.back();
  return fitting[random_.Int(0, static_cast<int64_t>(fitting.size()) - 1)];
}

PlanGenerator::Source PlanGenerator::Vector(int64_t size, DataType dtype) {
  return AddInput({random_.OneIn(5) ? AnyType() : dtype, {size}},
                  InputRole::kParameter);
}

const TensorDesc& PlanGenerator::DescOf(Source source) const {
  return source.is_input ? input_descs_[source.index] : op_descs_[source.index];
}

ValueId PlanGenerator::IdOf(Source source) const {
  return source.is_input ? ValueId{source.index}
                         : ResultOf(plan_, source.index);
}

// Adds an op of the kind if its random operands and attributes make it valid
// and its result small enough.
bool PlanGenerator::TryAddOp(const OpInfo& info) {
  Op op{info.kind, AnyName(), {}, DefaultAttributes(info)};
  switch (info.op_class) {
    case OpClass::kConv:
    case OpClass::kConvTranspose:
      op.operands = ConvOperands(info.op_class == OpClass::kConvTranspose,
                                 &std::get<ConvAttributes>(op.attributes));
      break;
    case OpClass::kGroupNorm:
      op.operands =
          GroupNormOperands(&std::get<GroupNormAttributes>(op.attributes));
      break;
    case OpClass::kBatchNorm:
      op.operands =
          BatchNormOperands(&std::get<BatchNormAttributes>(op.attributes));
      break;
    case OpClass::kBinary:
      op.operands = BinaryOperands();
      break;
    default:
      op.operands = UnaryOperands(info, &op.attributes);
  }
  plan_.ops.push_back(std::move(op));
  plan_.outputs = {
      {ResultOf(plan_, static_cast<int>(plan_.ops.size()) - 1), {}}};
  plan_.outputs[0].dtype = DataType::kF32;
  const auto values = ValidatePlan(plan_);
  if (!values.ok() ||
      NumElements(values->back().dims) > options_.max_elements) {
    plan_.ops.pop_back();
    return false;
  }
  op_descs_.push_back(values->back());
  return true;
}

std::vector<Operand> PlanGenerator::ConvOperands(bool transposed,
                                                 ConvAttributes* conv) {
  const Source input = AnySource(4, 4);
  const TensorDesc desc = DescOf(input);
  const int64_t channels = desc.dims[1];
  conv->stride = AnyPair(1, 3);
  conv->padding = AnyPair(0, 2);
  conv->dilation = AnyPair(1, 2);
  conv->groups = AnyDivisor(channels);
  const int64_t per_group = random_.Int(1, 3);
  const Pair kernel = AnyPair(1, 3);
  Dims weight = {per_group * conv->groups, channels / conv->groups, kernel[0],
                 kernel[1]};
  if (transposed) {
    weight = {channels, per_group, kernel[0], kernel[1]};
    for (size_t i = 0; i < 2; ++i) {
      conv->output_padding[i] =
          random_.Int(0, std::max(conv->stride[i], conv->dilation[i]) - 1);
    }
  }
  std::vector<Source> sources = {
      input, AddInput({desc.dtype, weight}, InputRole::kParameter)};
  if (random_.OneIn(2)) {
    sources.push_back(Vector(per_group * conv->groups, desc.dtype));
  }
  return IdsOf(sources, 3);
}

std::vector<Operand> PlanGenerator::GroupNormOperands(
    GroupNormAttributes* norm) {
  const Source input = AnySource(2, 4);
  const TensorDesc desc = DescOf(input);
  norm->num_groups = AnyDivisor(desc.dims[1]);
  norm->eps = random_.Pick({1e-5f, 1e-3f, 0.25f});
  std::vector<Source> sources = {input};
  for (int i = 0; i < 2 && random_.OneIn(2); ++i) {
    sources.push_back(Vector(desc.dims[1], desc.dtype));
  }
  return IdsOf(sources, 3);
}

std::vector<Operand> PlanGenerator::BatchNormOperands(
    BatchNormAttributes* norm) {
  const Source input = AnySource(2, 4);
  const TensorDesc desc = DescOf(input);
  norm->eps = random_.Pick({1e-5f, 1e-3f, 0.25f});
  std::vector<Source> sources = {input};
  const int64_t vectors = random_.Int(2, 4);
  for (int64_t i = 0; i < vectors; ++i) {
    sources.push_back(Vector(desc.dims[1], desc.dtype));
  }
  return IdsOf(sources, 5);
}

std::vector<Operand> PlanGenerator::UnaryOperands(const OpInfo& info,
                                                  Attributes* attributes) {
  const int min_rank = info.op_class == OpClass::kPool ? 4 : 0;
  const Source input = AnySource(min_rank, 4);
  FillUnary(DescOf(input), info, attributes);
  return IdsOf({input}, 1);
}

std::vector<Operand> PlanGenerator::BinaryOperands() {
  const Source input = AnySource(0, 4);
  std::vector<Operand> operands;
  if (random_.OneIn(3)) {
    operands = {IdOf(input), AnyFloat()};
  } else {
    const Source other = BroadcastPartner(DescOf(input));
    operands = {IdOf(input), IdOf(other)};
  }
  if (random_.OneIn(2)) std::swap(operands[0], operands[1]);
  return operands;
}

// A value of the same extents, or a parameter that broadcasts against `desc`.
PlanGenerator::Source PlanGenerator::BroadcastPartner(const TensorDesc& desc) {
  for (size_t i = 0; i < op_descs_.size() && random_.OneIn(2); ++i) {
    if (op_descs_[i].dims == desc.dims) return {false, static_cast<int>(i)};
  }
  Dims dims(desc.dims.begin() +
                random_.Int(0, static_cast<int64_t>(desc.dims.size())),
            desc.dims.end());
  for (int64_t& dim : dims) {
    if (random_.OneIn(3)) dim = 1;
  }
  return AddInput({AnyType(), dims}, random_.OneIn(3) ? InputRole::kActivation
                                                      : InputRole::kParameter);
}

// Ids of `sources`, then left-out operands, `count` in all.
std::vector<Operand> PlanGenerator::IdsOf(const std::vector<Source>& sources,
                                          size_t count) {
  std::vector<Operand> operands;
  for (Source source : sources) operands.emplace_back(IdOf(source));
  operands.resize(count);
  return operands;
}

void PlanGenerator::FillUnary(const TensorDesc& input, const OpInfo& info,
                              Attributes* out) {
  const int64_t rank = static_cast<int64_t>(input.dims.size());
  if (auto* pool = std::get_if<PoolAttributes>(out)) {
    const bool max = info.kind == OpKind::kMaxPool2d;
    pool->kernel_size = AnyPair(1, 4);
    pool->stride = random_.OneIn(3) ? pool->kernel_size : AnyPair(1, 3);
    for (size_t i = 0; i < 2; ++i) {
      pool->padding[i] = random_.Int(0, pool->kernel_size[i] / 2);
    }
    pool->ceil_mode = random_.OneIn(2);
    if (max) pool->dilation = AnyPair(1, 2);
    if (!max) pool->count_include_pad = random_.OneIn(2);
    if (!max && random_.OneIn(3)) pool->divisor_override = random_.Int(1, 9);
  } else if (auto* reduce = std::get_if<ReduceAttributes>(out)) {
    for (int64_t i = 0; i < rank; ++i) {
      if (random_.OneIn(2)) continue;
      reduce->dim.push_back(random_.OneIn(2) ? i : i - rank);
    }
    reduce->keepdim = random_.OneIn(2);
  } else if (auto* softmax = std::get_if<SoftmaxAttributes>(out)) {
    softmax->dim = rank == 0 ? -1 : random_.Int(-rank, rank - 1);
  } else if (auto* leaky = std::get_if<LeakyReluAttributes>(out)) {
    leaky->negative_slope = AnyFloat();
  } else if (auto* gelu = std::get_if<GeluAttributes>(out)) {
    gelu->approximate =
        random_.Pick({GeluApproximate::kNone, GeluApproximate::kTanh});
  } else if (auto* clamp = std::get_if<ClampAttributes>(out)) {
    const float low = AnyFloat();
    const float high = AnyFloat();
    const bool hardtanh = info.kind == OpKind::kHardtanh;
    clamp->min = hardtanh ? std::min(low, high) : low;
    clamp->max = hardtanh ? std::max(low, high) : high;
    if (!hardtanh && random_.OneIn(3)) clamp->min.reset();
    if (!hardtanh && clamp->min.has_value() && random_.OneIn(3)) {
      clamp->max.reset();
    }
  } else if (auto* softplus = std::get_if<SoftplusAttributes>(out)) {
    softplus->beta = random_.Pick({1.0f, 0.5f, 2.0f});
    softplus->threshold = random_.Pick({20.0f, 1.0f});
  } else if (auto* elu = std::get_if<EluAttributes>(out)) {
    elu->alpha = AnyFloat();
  } else if (auto* cast = std::get_if<CastAttributes>(out)) {
    cast->dtype = AnyType();
  }
}

DataType PlanGenerator::AnyType() {
  return random_.Pick(
      {DataType::kF32, DataType::kF32, DataType::kF16, DataType::kBF16});
}

float PlanGenerator::AnyFloat() {
  if (options_.extreme_floats && random_.OneIn(4)) {
    return random_.Pick({0.0f, -0.0f, std::numeric_limits<float>::infinity(),
                         -std::numeric_limits<float>::infinity(),
                         std::numeric_limits<float>::denorm_min(),
                         std::numeric_limits<float>::max()});
  }
  return static_cast<float>(random_.Int(-4000, 4000)) / 1000.0f;
}

Pair PlanGenerator::AnyPair(int64_t min, int64_t max) {
  const int64_t height = random_.Int(min, max);
  return {height, random_.OneIn(2) ? height : random_.Int(min, max)};
}

int64_t PlanGenerator::AnyDivisor(int64_t number) {
  int64_t divisor = random_.Int(1, number);
  while (number % divisor != 0) --divisor;
  return divisor;
}

std::string PlanGenerator::AnyName() {
  if (random_.OneIn(3)) return "";
  return fmt::format("n{}_{}", plan_.inputs.size() + plan_.ops.size(),
                     random_.Int(0, 9999));
}

void PlanGenerator::AddOutputs() {
  plan_.outputs.clear();
  const int64_t count =
      static_cast<int64_t>(plan_.inputs.size() + plan_.ops.size());
  plan_.outputs.push_back(
      {ValueId{static_cast<int32_t>(count - 1)}, AnyType()});
  while (plan_.outputs.size() < 4 && random_.OneIn(3)) {
    plan_.outputs.push_back(
        {ValueId{static_cast<int32_t>(random_.Int(0, count - 1))}, AnyType()});
  }
}

}  // namespace kiln
