#ifndef KILN_SERVER_ERRORS_H_
#define KILN_SERVER_ERRORS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace kiln {

// FAILED_PRECONDITION: a CUDA target, but no NVRTC.
absl::Status NoToolchain();

// NOT_FOUND: not in the cache, and the request said not to compile.
absl::Status NotCached(std::string_view key, std::string_view explanation);

// NOT_FOUND: no entry of that key or prefix.
absl::Status UnknownKey(std::string_view key);

// INVALID_ARGUMENT: neither 64 hexadecimal digits nor a prefix of at least 6.
absl::Status MalformedKey(std::string_view key);

// INVALID_ARGUMENT: several entries start like that.
absl::Status AmbiguousKey(std::string_view prefix, int matches);

// FAILED_PRECONDITION: client and server speak different protocols.
absl::Status WrongProtocol(int client, int server);

// FAILED_PRECONDITION: the session is not open (any more).
absl::Status UnknownSession(std::string_view session);

// FAILED_PRECONDITION: the session has no such buffer.
absl::Status UnknownBuffer(std::string_view buffer);

// ABORTED: the executor that held the buffer died.
absl::Status LostBuffer(std::string_view buffer);

// FAILED_PRECONDITION: the buffer is on another device than the call.
absl::Status WrongDevice(std::string_view buffer, std::string_view its_device,
                         std::string_view device);

// FAILED_PRECONDITION: this daemon has no such device.
absl::Status UnknownDevice(std::string_view device);

// FAILED_PRECONDITION: the artifact is for another kind of device.
absl::Status WrongTarget(std::string_view artifact, std::string_view device);

// RESOURCE_EXHAUSTED: "Too many <what> (limit <limit>)".
absl::Status TooMany(std::string_view what, int64_t limit);

// What `body` returns; INTERNAL if it throws, as nothing does but by a mistake.
// gRPC would answer that without a word, and the call would never end.
absl::Status StatusOf(const std::function<absl::Status()>& body);

}  // namespace kiln

#endif  // KILN_SERVER_ERRORS_H_
