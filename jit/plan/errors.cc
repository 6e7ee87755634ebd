#include "jit/plan/errors.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "absl/strings/cord.h"

namespace kiln {
namespace {

constexpr char kPayloadUrl[] = "type.kiln.dev/kiln.v1.ErrorDetail";

constexpr std::array kFields = {
    &ErrorDetail::field,       &ErrorDetail::value,
    &ErrorDetail::limit,       &ErrorDetail::hint,
    &ErrorDetail::compile_log, &ErrorDetail::generated_source};

// Each field as "<length>:<bytes>", in the order of kFields.
std::string Encode(const ErrorDetail& detail) {
  std::string out;
  for (auto field : kFields) {
    const std::string& text = detail.*field;
    out += fmt::format("{}:", text.size());
    out += text;
  }
  return out;
}

// The next field of `*rest`, which is moved behind it.
std::optional<std::string> DecodeField(std::string_view* rest) {
  size_t size = 0;
  const char* const end = rest->data() + rest->size();
  const auto [digits_end, error] = std::from_chars(rest->data(), end, size);
  if (error != std::errc() || digits_end == end) return std::nullopt;
  rest->remove_prefix(digits_end - rest->data() + 1);
  if (size > rest->size()) return std::nullopt;
  std::string field(rest->substr(0, size));
  rest->remove_prefix(size);
  return field;
}

std::string FieldMessage(std::string_view field, std::string_view problem,
                         std::string_view value, std::string_view limit) {
  return fmt::format("{}: {} (got {}, allowed: {})", field, problem, value,
                     limit);
}

ErrorDetail FieldDetail(std::string_view field, std::string_view value,
                        std::string_view limit) {
  ErrorDetail detail;
  detail.field = field;
  detail.value = value;
  detail.limit = limit;
  return detail;
}

}  // namespace

absl::Status WithDetail(absl::Status status, const ErrorDetail& detail) {
  status.SetPayload(kPayloadUrl, absl::Cord(Encode(detail)));
  return status;
}

ErrorDetail DetailOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayloadUrl);
  if (!payload.has_value()) return {};
  const std::string bytes(*payload);
  std::string_view rest = bytes;
  ErrorDetail detail;
  for (auto field : kFields) {
    std::optional<std::string> text = DecodeField(&rest);
    if (!text.has_value()) return {};
    detail.*field = *std::move(text);
  }
  return detail;
}

absl::Status InvalidField(std::string_view field, std::string_view problem,
                          std::string_view value, std::string_view limit) {
  return WithDetail(
      absl::InvalidArgumentError(FieldMessage(field, problem, value, limit)),
      FieldDetail(field, value, limit));
}

absl::Status UnknownField(std::string_view field, std::string_view problem,
                          std::string_view value, std::string_view limit) {
  return WithDetail(
      absl::UnimplementedError(FieldMessage(field, problem, value, limit)),
      FieldDetail(field, value, limit));
}

}  // namespace kiln
