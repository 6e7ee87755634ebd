#ifndef KILN_JIT_COMPILE_EAGER_PLAN_H_
#define KILN_JIT_COMPILE_EAGER_PLAN_H_

#include <string>

#include "absl/status/statusor.h"
#include "jit/artifact/artifact.h"
#include "jit/compile/compile_request.h"

namespace kiln {

class NvrtcCompiler;

// The variant "eager": an operation at a time, as PyTorch without a compiler
// goes about it, by the kernels of eager.cu. They take extents and attributes
// as arguments, so one module serves every plan, and a plan needs none of its
// own compiled: its artifact is that module and a list of launches.

// Compiles the module. Errors: those of NvrtcCompiler::Compile.
absl::StatusOr<Module> CompileEagerModule(const std::string& arch,
                                          NvrtcCompiler* nvrtc);

// A request of this variant, of a small plan: what is asked for where only the
// module is wanted.
CompileRequest EagerModuleRequest(const Target& target,
                                  const std::string& toolchain);

// The artifact of a request of this variant, whose module is known. Takes
// microseconds; needs neither NVRTC nor a GPU.
Artifact MakeEagerArtifact(const CompileRequest& request, Module module);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_EAGER_PLAN_H_
