#include "client/buffer.h"

#include <utility>

#include "client/memory_file.h"
#include "client/session_state.h"
#include "client/unix_socket.h"

namespace kiln {

struct SharedBuffer::Registration {
  std::shared_ptr<client::SessionState> session;
  client::MemoryFile memory;
  std::string id;

  ~Registration();
};

// A failure means that the session is gone, and the buffer with it.
SharedBuffer::Registration::~Registration() {
  v1::UnregisterRequest request;
  request.set_session(session->id());
  request.set_buffer(id);
  const client::Connection& connection = session->connection();
  (void)connection.Call(connection.buffers(), &v1::Buffers::Stub::Unregister,
                        request);
}

SharedBuffer::SharedBuffer(std::unique_ptr<Registration> registration)
    : registration_(std::move(registration)) {}
SharedBuffer::SharedBuffer(SharedBuffer&&) noexcept = default;
SharedBuffer& SharedBuffer::operator=(SharedBuffer&&) noexcept = default;
SharedBuffer::~SharedBuffer() = default;

void* SharedBuffer::data() const { return registration_->memory.data(); }
int64_t SharedBuffer::size_bytes() const {
  return registration_->memory.size_bytes();
}
const std::string& SharedBuffer::id() const { return registration_->id; }

absl::StatusOr<SharedBuffer> SharedBuffer::Register(
    std::shared_ptr<client::SessionState> session, const std::string& device,
    client::MemoryFile memory) {
  const uint64_t tag = session->NextTag();
  const absl::Status sent = client::SendDescriptor(
      session->side_socket(), session->side_token(), tag, memory.fd());
  if (!sent.ok()) return sent;

  v1::RegisterRequest request;
  request.set_session(session->id());
  request.set_device(device);
  request.mutable_memfd()->set_tag(tag);
  request.set_size_bytes(memory.size_bytes());
  const client::Connection& connection = session->connection();
  const absl::StatusOr<v1::RegisterResponse> response = connection.Call(
      connection.buffers(), &v1::Buffers::Stub::Register, request);
  if (!response.ok()) return response.status();
  return SharedBuffer(std::unique_ptr<Registration>(new Registration{
      std::move(session), std::move(memory), response->buffer()}));
}

}  // namespace kiln
