#ifndef KILN_TESTS_JIT_COMPILE_COMPILE_TESTING_H_
#define KILN_TESTS_JIT_COMPILE_COMPILE_TESTING_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "jit/artifact/artifact.h"
#include "jit/compile/compile_request.h"
#include "jit/compile/nvrtc_compiler.h"
#include "jit/compile/toolchain.h"

namespace kiln {

// The NVRTC of this machine, loaded on first use; the tests abort without one.
// scripts/setup leaves wheels in build/nvrtc.
NvrtcCompiler& TestNvrtc();
const Toolchain& TestToolchain();

// The request for a valid plan in text form.
CompileRequest RequestFor(std::string_view plan_text, std::string_view target);

absl::StatusOr<Artifact> CompileText(std::string_view plan_text,
                                     std::string_view target);

// Message, log and generated source.
std::string DescribeFailure(const absl::Status& status);

// Records a test failure unless the artifact's launch record is sound:
// arguments match kernel parameters, places are inside and aligned, every
// output is written by exactly one kernel, nothing is read before it is
// written, and no kernel writes workspace that a later one still reads.
void CheckLaunchRecord(const Artifact& artifact);

}  // namespace kiln

#endif  // KILN_TESTS_JIT_COMPILE_COMPILE_TESTING_H_
