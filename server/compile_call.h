#ifndef KILN_SERVER_COMPILE_CALL_H_
#define KILN_SERVER_COMPILE_CALL_H_

#include <memory>

#include "kiln/v1/service.pb.h"
#include "server/call.h"
#include "server/front.h"

namespace kiln {

// Answers Compiler.Compile: resolves the key, looks it up or compiles, fills
// `response`. The client's giving up ends its part of the compile. `request`
// is read before this returns.
void StartCompileCall(Front& front, std::shared_ptr<PendingCall> call,
                      const v1::CompileRequest& request,
                      v1::CompileResponse* response);

}  // namespace kiln

#endif  // KILN_SERVER_COMPILE_CALL_H_
