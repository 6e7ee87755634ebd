#ifndef KILN_JIT_COMPILE_COMPILE_REQUEST_H_
#define KILN_JIT_COMPILE_COMPILE_REQUEST_H_

#include <string>
#include <string_view>

#include "jit/artifact/target.h"
#include "jit/plan/canonical.h"

namespace kiln {

// Everything that decides the bytes of an artifact. CompilePlan sees this and
// nothing else. A value.
struct CompileRequest {
  CanonicalPlan plan;
  Target target;
  std::string toolchain;         // Toolchain::id; empty for the cpu target
  std::string variant = "auto";  // or another Tuning's text (tuning.h)
};

// The text whose SHA-256 is the key: one "field: value" line each for key,
// compiler, target, toolchain, grade and variant, then the canonical plan.
// Computed without scheduling. Format: docs/cache.md.
std::string KeyText(const CompileRequest& request);

// 64 hexadecimal digits.
std::string KeyOf(std::string_view key_text);

// Digest, taken at build time, of kernel_sources/, jit/plan and jit/compile:
// any change to what could alter generated code changes every key.
std::string_view CompilerDigest();

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_COMPILE_REQUEST_H_
