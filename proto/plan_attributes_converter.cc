#include "proto/plan_attributes_converter.h"

#include <fmt/format.h>
#include <google/protobuf/repeated_field.h>

#include <utility>

#include "jit/plan/errors.h"

namespace kiln {
namespace {

using Entries = google::protobuf::RepeatedField<int64_t>;

// `*out` is left alone, at its default, if there are no entries.
absl::Status ReadPair(const Entries& entries, const std::string& path,
                      Pair* out) {
  if (entries.size() > 2) {
    return InvalidField(path, "has the wrong number of entries",
                        fmt::format("{}", entries.size()),
                        "none, one, or two for height and width");
  }
  if (!entries.empty()) *out = {entries[0], entries[entries.size() - 1]};
  return absl::OkStatus();
}

void WritePair(const Pair& value, Entries* entries) {
  entries->Add(value[0]);
  entries->Add(value[1]);
}

absl::Status Missing(const std::string& path) {
  return InvalidField(path, "has no default", "nothing", "a value");
}

// One Read per alternative: fills `*out`, which holds the defaults.

absl::Status Read(const v1::ConvAttributes& message, const std::string& path,
                  ConvAttributes* out) {
  if (auto s = ReadPair(message.stride(), path + ".stride", &out->stride);
      !s.ok()) {
    return s;
  }
  if (auto s = ReadPair(message.padding(), path + ".padding", &out->padding);
      !s.ok()) {
    return s;
  }
  if (auto s = ReadPair(message.output_padding(), path + ".output_padding",
                        &out->output_padding);
      !s.ok()) {
    return s;
  }
  if (message.has_groups()) out->groups = message.groups();
  return ReadPair(message.dilation(), path + ".dilation", &out->dilation);
}

absl::Status Read(const v1::GroupNormAttributes& message, const std::string&,
                  GroupNormAttributes* out) {
  out->num_groups = message.num_groups();
  if (message.has_eps()) out->eps = message.eps();
  return absl::OkStatus();
}

absl::Status Read(const v1::BatchNormAttributes& message, const std::string&,
                  BatchNormAttributes* out) {
  if (message.has_eps()) out->eps = message.eps();
  return absl::OkStatus();
}

absl::Status Read(const v1::PoolAttributes& message, const std::string& path,
                  PoolAttributes* out) {
  if (message.kernel_size().empty()) return Missing(path + ".kernel_size");
  if (auto s = ReadPair(message.kernel_size(), path + ".kernel_size",
                        &out->kernel_size);
      !s.ok()) {
    return s;
  }
  out->stride = out->kernel_size;
  if (auto s = ReadPair(message.stride(), path + ".stride", &out->stride);
      !s.ok()) {
    return s;
  }
  if (auto s = ReadPair(message.padding(), path + ".padding", &out->padding);
      !s.ok()) {
    return s;
  }
  out->ceil_mode = message.ceil_mode();
  if (message.has_count_include_pad()) {
    out->count_include_pad = message.count_include_pad();
  }
  if (message.has_divisor_override()) {
    out->divisor_override = message.divisor_override();
  }
  return ReadPair(message.dilation(), path + ".dilation", &out->dilation);
}

absl::Status Read(const v1::ReduceAttributes& message, const std::string&,
                  ReduceAttributes* out) {
  out->dim.assign(message.dim().begin(), message.dim().end());
  out->keepdim = message.keepdim();
  return absl::OkStatus();
}

absl::Status Read(const v1::SoftmaxAttributes& message, const std::string&,
                  SoftmaxAttributes* out) {
  out->dim = message.dim();
  return absl::OkStatus();
}

absl::Status Read(const v1::LeakyReluAttributes& message, const std::string&,
                  LeakyReluAttributes* out) {
  if (message.has_negative_slope()) {
    out->negative_slope = message.negative_slope();
  }
  return absl::OkStatus();
}

absl::Status Read(const v1::GeluAttributes& message, const std::string& path,
                  GeluAttributes* out) {
  switch (message.approximate()) {
    case v1::GeluAttributes::NONE:
      out->approximate = GeluApproximate::kNone;
      return absl::OkStatus();
    case v1::GeluAttributes::TANH:
      out->approximate = GeluApproximate::kTanh;
      return absl::OkStatus();
    default:
      return UnknownField(
          path + ".approximate", "is not known to this build",
          fmt::format("{}", static_cast<int>(message.approximate())),
          "NONE (0) or TANH (1)");
  }
}

absl::Status Read(const v1::ClampAttributes& message, const std::string&,
                  ClampAttributes* out) {
  if (message.has_min()) out->min = message.min();
  if (message.has_max()) out->max = message.max();
  return absl::OkStatus();
}

absl::Status Read(const v1::SoftplusAttributes& message, const std::string&,
                  SoftplusAttributes* out) {
  if (message.has_beta()) out->beta = message.beta();
  if (message.has_threshold()) out->threshold = message.threshold();
  return absl::OkStatus();
}

absl::Status Read(const v1::EluAttributes& message, const std::string&,
                  EluAttributes* out) {
  if (message.has_alpha()) out->alpha = message.alpha();
  return absl::OkStatus();
}

absl::Status Read(const v1::CastAttributes& message, const std::string& path,
                  CastAttributes* out) {
  const absl::StatusOr<DataType> dtype =
      DataTypeFromProto(message.dtype(), path + ".dtype");
  if (!dtype.ok()) return dtype.status();
  out->dtype = *dtype;
  return absl::OkStatus();
}

// Reads `message` if `out`, which holds the defaults of the op's kind, is of
// its alternative.
template <typename Alternative, typename Message>
absl::StatusOr<Attributes> ReadInto(Attributes out, const Message& message,
                                    std::string_view given,
                                    const std::string& path,
                                    std::string_view op_name) {
  auto* const alternative = std::get_if<Alternative>(&out);
  if (alternative == nullptr) {
    return InvalidField(path + ".attributes",
                        fmt::format("do not belong to {}", op_name), given,
                        AttributesFieldName(out.index()));
  }
  if (auto s = Read(message, fmt::format("{}.{}", path, given), alternative);
      !s.ok()) {
    return s;
  }
  return out;
}

// The kind has an attribute without a default, so its message must be there.
bool NeedsAttributes(const OpInfo& info) {
  return info.op_class == OpClass::kGroupNorm ||
         info.op_class == OpClass::kPool ||
         info.op_class == OpClass::kSoftmax || info.op_class == OpClass::kCast;
}

// One Write per alternative, every default explicit.

void Write(const std::monostate&, v1::Op*) {}

void Write(const ConvAttributes& a, v1::Op* op) {
  v1::ConvAttributes* const message = op->mutable_conv();
  WritePair(a.stride, message->mutable_stride());
  WritePair(a.padding, message->mutable_padding());
  WritePair(a.output_padding, message->mutable_output_padding());
  WritePair(a.dilation, message->mutable_dilation());
  message->set_groups(a.groups);
}

void Write(const GroupNormAttributes& a, v1::Op* op) {
  op->mutable_group_norm()->set_num_groups(a.num_groups);
  op->mutable_group_norm()->set_eps(a.eps);
}

void Write(const BatchNormAttributes& a, v1::Op* op) {
  op->mutable_batch_norm()->set_eps(a.eps);
}

void Write(const PoolAttributes& a, v1::Op* op) {
  v1::PoolAttributes* const message = op->mutable_pool();
  WritePair(a.kernel_size, message->mutable_kernel_size());
  WritePair(a.stride, message->mutable_stride());
  WritePair(a.padding, message->mutable_padding());
  WritePair(a.dilation, message->mutable_dilation());
  message->set_ceil_mode(a.ceil_mode);
  message->set_count_include_pad(a.count_include_pad);
  if (a.divisor_override.has_value()) {
    message->set_divisor_override(*a.divisor_override);
  }
}

void Write(const ReduceAttributes& a, v1::Op* op) {
  v1::ReduceAttributes* const message = op->mutable_reduce();
  message->mutable_dim()->Add(a.dim.begin(), a.dim.end());
  message->set_keepdim(a.keepdim);
}

void Write(const SoftmaxAttributes& a, v1::Op* op) {
  op->mutable_softmax()->set_dim(a.dim);
}

void Write(const LeakyReluAttributes& a, v1::Op* op) {
  op->mutable_leaky_relu()->set_negative_slope(a.negative_slope);
}

void Write(const GeluAttributes& a, v1::Op* op) {
  op->mutable_gelu()->set_approximate(
      static_cast<v1::GeluAttributes::Approximate>(a.approximate));
}

void Write(const ClampAttributes& a, v1::Op* op) {
  v1::ClampAttributes* const message = op->mutable_clamp();
  if (a.min.has_value()) message->set_min(*a.min);
  if (a.max.has_value()) message->set_max(*a.max);
}

void Write(const SoftplusAttributes& a, v1::Op* op) {
  op->mutable_softplus()->set_beta(a.beta);
  op->mutable_softplus()->set_threshold(a.threshold);
}

void Write(const EluAttributes& a, v1::Op* op) {
  op->mutable_elu()->set_alpha(a.alpha);
}

void Write(const CastAttributes& a, v1::Op* op) {
  op->mutable_cast()->set_dtype(static_cast<v1::DataType>(a.dtype));
}

}  // namespace

absl::StatusOr<Attributes> AttributesFromProto(const v1::Op& message,
                                               const OpInfo& info,
                                               const std::string& path) {
  const Attributes defaults = DefaultAttributes(info);
  const auto read = [&](auto tag, const auto& m, std::string_view given) {
    return ReadInto<decltype(tag)>(defaults, m, given, path, info.name);
  };
  switch (message.attributes_case()) {
    case v1::Op::kConv:
      return read(ConvAttributes(), message.conv(), "conv");
    case v1::Op::kGroupNorm:
      return read(GroupNormAttributes(), message.group_norm(), "group_norm");
    case v1::Op::kBatchNorm:
      return read(BatchNormAttributes(), message.batch_norm(), "batch_norm");
    case v1::Op::kPool:
      return read(PoolAttributes(), message.pool(), "pool");
    case v1::Op::kReduce:
      return read(ReduceAttributes(), message.reduce(), "reduce");
    case v1::Op::kSoftmax:
      return read(SoftmaxAttributes(), message.softmax(), "softmax");
    case v1::Op::kLeakyRelu:
      return read(LeakyReluAttributes(), message.leaky_relu(), "leaky_relu");
    case v1::Op::kGelu:
      return read(GeluAttributes(), message.gelu(), "gelu");
    case v1::Op::kClamp:
      return read(ClampAttributes(), message.clamp(), "clamp");
    case v1::Op::kSoftplus:
      return read(SoftplusAttributes(), message.softplus(), "softplus");
    case v1::Op::kElu:
      return read(EluAttributes(), message.elu(), "elu");
    case v1::Op::kCast:
      return read(CastAttributes(), message.cast(), "cast");
    case v1::Op::ATTRIBUTES_NOT_SET:
      break;
  }
  if (NeedsAttributes(info)) {
    return Missing(
        fmt::format("{}.{}", path, AttributesFieldName(info.attributes)));
  }
  return defaults;
}

void AttributesToProto(const Attributes& attributes, v1::Op* message) {
  std::visit([&](const auto& a) { Write(a, message); }, attributes);
}

absl::StatusOr<DataType> DataTypeFromProto(int number,
                                           const std::string& path) {
  switch (number) {
    case v1::F32:
      return DataType::kF32;
    case v1::F16:
      return DataType::kF16;
    case v1::BF16:
      return DataType::kBF16;
    case v1::DATA_TYPE_UNSPECIFIED:
      return InvalidField(path, "has no default", "unspecified",
                          "F32, F16 or BF16");
    default:
      return UnknownField(path, "is not a data type that this build knows",
                          fmt::format("{}", number), "F32, F16 or BF16");
  }
}

}  // namespace kiln
