#include "server/status_converter.h"

#include "jit/plan/errors.h"

namespace kiln {
namespace {

constexpr std::string_view kCut = "\n[cut]\n";
// gRPC refuses trailers above 8 KiB, and the message travels there, too.
constexpr size_t kMaxMessageBytes = 2048;
constexpr size_t kMaxFieldBytes = 512;

// The beginning and the end of `text`: errors stand first, their sum last.
std::string CutMiddle(const std::string& text, size_t limit_bytes) {
  if (text.size() <= limit_bytes) return text;
  if (limit_bytes < 2 * kCut.size()) return {};
  const size_t tail = (limit_bytes - kCut.size()) / 4;
  const size_t head = limit_bytes - kCut.size() - tail;
  return text.substr(0, head) + std::string(kCut) +
         text.substr(text.size() - tail);
}

// Protobuf strings must be UTF-8; a compiler's log need not be.
std::string Ascii(std::string text) {
  for (char& c : text) {
    const bool printable = c >= 0x20 && c < 0x7f;
    if (!printable && c != '\n' && c != '\t') c = '?';
  }
  return text;
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(
      static_cast<grpc::StatusCode>(status.raw_code()),
      CutMiddle(std::string(status.message()), kMaxMessageBytes));
}

v1::ErrorDetail DetailToProto(const absl::Status& status,
                              std::string_view request_id, size_t limit_bytes) {
  const ErrorDetail detail = DetailOf(status);
  v1::ErrorDetail message;
  message.set_request_id(std::string(request_id));
  message.set_field(Ascii(CutMiddle(detail.field, kMaxFieldBytes)));
  message.set_value(Ascii(CutMiddle(detail.value, kMaxFieldBytes)));
  message.set_limit(Ascii(CutMiddle(detail.limit, kMaxFieldBytes)));
  message.set_hint(Ascii(CutMiddle(detail.hint, kMaxFieldBytes)));

  const size_t used = message.ByteSizeLong();
  const size_t left = limit_bytes > used ? limit_bytes - used : 0;
  const std::string log = CutMiddle(detail.compile_log, left);
  message.set_compile_log(Ascii(log));
  if (detail.generated_source.size() <= left - log.size()) {
    message.set_generated_source(Ascii(detail.generated_source));
  }
  return message;
}

}  // namespace kiln
