#ifndef KILN_PROTO_PROTOCOL_H_
#define KILN_PROTO_PROTOCOL_H_

namespace kiln {

// Grows when an old client would misread a new server or the other way round.
// Attach refuses any other number; GetServerInfo names the server's.
inline constexpr int kProtocolVersion = 1;

// Request metadata: the most bytes of ErrorDetail that the client can take.
// Without it the detail is cut to 4 KiB, because gRPC clients refuse trailers
// above 8 KiB by default.
inline constexpr char kDetailLimitMetadata[] = "kiln-detail-limit";

// Trailer that carries a serialised kiln.v1.ErrorDetail.
inline constexpr char kErrorDetailMetadata[] = "kiln-error-detail-bin";

}  // namespace kiln

#endif  // KILN_PROTO_PROTOCOL_H_
