#include "jit/compile/errors.h"

#include "fmt/format.h"
#include "jit/plan/errors.h"

namespace kiln {
namespace {

// Values of nvrtcResult (nvrtc.h); fixed by NVRTC's ABI.
constexpr int kOutOfMemory = 1;
constexpr int kInvalidOption = 5;
constexpr int kCancelled = 16;

absl::Status WithSource(absl::Status status, std::string_view source,
                        std::string_view log) {
  ErrorDetail detail;
  detail.hint = "This is a bug of Kiln's; please report it with the plan.";
  detail.compile_log = log;
  detail.generated_source = source;
  return WithDetail(std::move(status), detail);
}

}  // namespace

absl::Status NoNvrtc(std::string_view arch) {
  ErrorDetail detail;
  detail.hint = "Install the CUDA toolkit or NVRTC's PyPI wheel.";
  return WithDetail(
      absl::FailedPreconditionError(fmt::format(
          "Compiling for {} needs NVRTC, which is not loaded.", arch)),
      detail);
}

absl::Status UnknownVariant(std::string_view variant) {
  return InvalidField(
      "variant", "is not a schedule", variant,
      "auto, eager, or any of conv<1 to 15>, rows<1 to 15>, images<1 to 2>, "
      "correlations1, linear<1 to 15> in this order with + between them");
}

absl::Status UnknownArchitecture(const AskedArchitecture& arch) {
  std::string known;
  for (const int number : arch.known) {
    known += fmt::format("{}sm_{}", known.empty() ? "" : ", ", number);
  }
  return UnknownField("target", "is not an architecture of this NVRTC",
                      arch.name, known.empty() ? "unknown" : known);
}

absl::Status Spills(std::string_view symbol, std::string_view source,
                    std::string_view log) {
  return WithSource(absl::InternalError(fmt::format(
                        "The kernel {} does not fit in registers.", symbol)),
                    source, log);
}

absl::Status NoKernelInfo(std::string_view symbol, std::string_view source,
                          std::string_view log) {
  return WithSource(
      absl::InternalError(
          fmt::format("NVRTC's log does not describe the kernel {}.", symbol)),
      source, log);
}

absl::Status NvrtcNotFound(const std::vector<std::string>& folders) {
  ErrorDetail detail;
  detail.hint = "Install the CUDA toolkit or NVRTC's PyPI wheel.";
  return WithDetail(
      absl::NotFoundError(fmt::format(
          "No libnvrtc.so with its libnvrtc-builtins.so is in any of: {}.",
          fmt::join(folders, ", "))),
      detail);
}

absl::Status NvrtcNotAt(std::string_view path, std::string_view problem) {
  return InvalidField("nvrtc", problem, path,
                      "a libnvrtc.so.N or a folder that holds one");
}

absl::Status NvrtcNotLoaded(std::string_view path, std::string_view problem) {
  return absl::FailedPreconditionError(
      fmt::format("NVRTC at {} does not load ({}).", path, problem));
}

absl::Status NvrtcError(int result, std::string_view name,
                        const AskedArchitecture& arch, std::string_view source,
                        std::string_view log) {
  switch (result) {
    case kOutOfMemory:
      return absl::ResourceExhaustedError("NVRTC ran out of memory.");
    case kInvalidOption:
      return UnknownArchitecture(arch);
    case kCancelled:
      return absl::DeadlineExceededError(
          "The compilation took too long and was given up.");
    default:
      return WithSource(absl::InternalError(fmt::format(
                            "NVRTC rejects the generated source ({}).", name)),
                        source, log);
  }
}

}  // namespace kiln
