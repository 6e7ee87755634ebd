#ifndef KILN_SERVER_SIDE_SOCKET_H_
#define KILN_SERVER_SIDE_SOCKET_H_

#include "proto/file_descriptor.h"
#include "server/session_table.h"

namespace kiln {

// Reads one message of the side socket, {token (16 bytes), tag (u64,
// little-endian)} with one descriptor, parks the descriptor in the token's
// session and answers one byte: 0 accepted, 1 refused. Does not block: the
// message must be there. Protocol: Attach in proto/kiln/v1/service.proto.
void ReceiveDescriptor(const FileDescriptor& connection,
                       const SessionTable& sessions);

}  // namespace kiln

#endif  // KILN_SERVER_SIDE_SOCKET_H_
