#include "jit/compile/compile_request.h"

#include "fmt/format.h"
#include "jit/artifact/digest.h"

namespace kiln {
namespace {

// Grows when the meaning of a line below changes.
constexpr int kKeyVersion = 1;

}  // namespace

std::string KeyText(const CompileRequest& request) {
  return fmt::format(
      "key: {}\ncompiler: {}\ntarget: {}\ntoolchain: {}\ngrade: {}\n"
      "variant: {}\nplan:\n{}",
      kKeyVersion, CompilerDigest(), ToString(request.target),
      request.toolchain, GradeName(request.plan.plan.grade), request.variant,
      CanonicalText(request.plan));
}

std::string KeyOf(std::string_view key_text) { return Sha256Hex(key_text); }

}  // namespace kiln
