#include "server/errors.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "jit/plan/errors.h"

namespace kiln {
namespace {

absl::Status WithHint(absl::Status status, std::string hint) {
  ErrorDetail detail;
  detail.hint = std::move(hint);
  return WithDetail(std::move(status), detail);
}

}  // namespace

absl::Status NoToolchain() {
  return WithHint(
      absl::FailedPreconditionError(
          "The daemon finds no NVRTC, and its cache does not name exactly one"),
      "install a CUDA toolkit or start kilnd with --nvrtc PATH");
}

absl::Status NotCached(std::string_view key, std::string_view explanation) {
  return WithHint(absl::NotFoundError(fmt::format(
                      "The key {} is not in the cache{}{}", key,
                      explanation.empty() ? "" : ": ", explanation)),
                  "allow compiling, or prewarm the cache with `kiln prewarm`");
}

absl::Status UnknownKey(std::string_view key) {
  return absl::NotFoundError(
      fmt::format("The key {} is not in the cache", key));
}

absl::Status MalformedKey(std::string_view key) {
  return InvalidField("key", "is no key", key,
                      "64 lower-case hexadecimal digits, or a prefix of at "
                      "least 6");
}

absl::Status AmbiguousKey(std::string_view prefix, int matches) {
  return InvalidField("key", fmt::format("fits {} entries", matches), prefix,
                      "a prefix that one entry has");
}

absl::Status WrongProtocol(int client, int server) {
  return WithHint(
      absl::FailedPreconditionError(fmt::format(
          "The client speaks protocol {} and the daemon protocol {}", client,
          server)),
      "install client and daemon of one release, then restart kilnd");
}

absl::Status UnknownSession(std::string_view session) {
  return WithHint(absl::FailedPreconditionError(
                      fmt::format("The session {} is not open", session)),
                  "open one with Attach and keep its stream");
}

absl::Status UnknownBuffer(std::string_view buffer) {
  return WithHint(absl::FailedPreconditionError(
                      fmt::format("The session has no buffer {}", buffer)),
                  "register it first");
}

absl::Status LostBuffer(std::string_view buffer) {
  return WithHint(
      absl::AbortedError(fmt::format(
          "The buffer {} is lost: its executor was restarted", buffer)),
      "register the buffer again, then retry");
}

absl::Status WrongDevice(std::string_view buffer, std::string_view its_device,
                         std::string_view device) {
  return absl::FailedPreconditionError(
      fmt::format("The buffer {} is on {} and the call is for {}", buffer,
                  its_device, device));
}

absl::Status UnknownDevice(std::string_view device) {
  return WithHint(absl::FailedPreconditionError(
                      fmt::format("The daemon has no device \"{}\"", device)),
                  "GetServerInfo lists the devices");
}

absl::Status WrongTarget(std::string_view artifact, std::string_view device) {
  return absl::FailedPreconditionError(fmt::format(
      "The artifact is for {}, the device is {}", artifact, device));
}

absl::Status TooMany(std::string_view what, int64_t limit) {
  return absl::ResourceExhaustedError(
      fmt::format("Too many {} (limit {})", what, limit));
}

absl::Status StatusOf(const std::function<absl::Status()>& body) {
  try {
    return body();
  } catch (const std::exception& thrown) {
    return WithHint(absl::InternalError(fmt::format(
                        "The daemon's code threw: {}", thrown.what())),
                    "this is a bug of Kiln's; please report it with the plan");
  }
}

}  // namespace kiln
