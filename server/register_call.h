#ifndef KILN_SERVER_REGISTER_CALL_H_
#define KILN_SERVER_REGISTER_CALL_H_

#include <memory>

#include "kiln/v1/service.pb.h"
#include "server/call.h"
#include "server/front.h"

namespace kiln {

// Answers Buffers.Register: opens the memory in the device's executor, checks
// the range against the size that the executor reports, and adds the buffer.
// A memory that does not become a buffer is closed again.
void StartRegisterCall(Front& front, std::shared_ptr<PendingCall> call,
                       const v1::RegisterRequest& request,
                       v1::RegisterResponse* response);

}  // namespace kiln

#endif  // KILN_SERVER_REGISTER_CALL_H_
