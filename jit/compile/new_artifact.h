#ifndef KILN_JIT_COMPILE_NEW_ARTIFACT_H_
#define KILN_JIT_COMPILE_NEW_ARTIFACT_H_

#include "jit/artifact/artifact.h"
#include "jit/compile/compile_request.h"

namespace kiln {

// What every artifact of a request has, whatever its kernels: key, plan, target
// and slots. Modules and variants are left to the caller.
Artifact NewArtifact(const CompileRequest& request);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_NEW_ARTIFACT_H_
