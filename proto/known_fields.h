#ifndef KILN_PROTO_KNOWN_FIELDS_H_
#define KILN_PROTO_KNOWN_FIELDS_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/status.h"

namespace kiln {

// UNIMPLEMENTED, naming the message that holds it, if `message` or a message
// inside it has a field that this build does not know: skipping one that a
// newer build wrote would change the meaning. `root` is what a path calls
// `message` itself; paths of the fields inside begin below it.
absl::Status CheckKnownFields(const google::protobuf::Message& message,
                              const std::string& root);

}  // namespace kiln

#endif  // KILN_PROTO_KNOWN_FIELDS_H_
