#include "client/buffer.h"

#include <cstring>
#include <utility>
#include <variant>

#include "client/cuda_memory.h"
#include "client/memory_file.h"
#include "client/session_state.h"
#include "client/unix_socket.h"

namespace kiln {

struct SharedBuffer::Registration {
  using Memory = std::variant<client::MemoryFile, client::CudaMemory>;
  std::shared_ptr<client::SessionState> session;
  Memory memory;
  std::string id;

  // Sends `request`, which already says where the memory is.
  static absl::StatusOr<SharedBuffer> Make(
      std::shared_ptr<client::SessionState> session, const std::string& device,
      v1::RegisterRequest request, Memory memory);
  ~Registration();
};

absl::StatusOr<SharedBuffer> SharedBuffer::Registration::Make(
    std::shared_ptr<client::SessionState> session, const std::string& device,
    v1::RegisterRequest request, Memory memory) {
  request.set_session(session->id());
  request.set_device(device);
  const client::Connection& connection = session->connection();
  const absl::StatusOr<v1::RegisterResponse> response = connection.Call(
      connection.buffers(), &v1::Buffers::Stub::Register, request);
  if (!response.ok()) return response.status();
  return SharedBuffer(std::unique_ptr<Registration>(new Registration{
      std::move(session), std::move(memory), response->buffer()}));
}

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

void* SharedBuffer::data() const {
  const auto* cuda = std::get_if<client::CudaMemory>(&registration_->memory);
  if (cuda != nullptr) return reinterpret_cast<void*>(cuda->address());
  return std::get<client::MemoryFile>(registration_->memory).data();
}

int64_t SharedBuffer::size_bytes() const {
  return std::visit([](const auto& memory) { return memory.size_bytes(); },
                    registration_->memory);
}

const std::string& SharedBuffer::id() const { return registration_->id; }

absl::Status SharedBuffer::CopyFrom(std::span<const std::byte> bytes) const {
  const auto* cuda = std::get_if<client::CudaMemory>(&registration_->memory);
  if (cuda != nullptr) return cuda->CopyFrom(bytes);
  const absl::Status fits = client::CheckFits(bytes.size(), size_bytes());
  if (fits.ok()) std::memcpy(data(), bytes.data(), bytes.size());
  return fits;
}

absl::Status SharedBuffer::CopyTo(std::span<std::byte> bytes) const {
  const auto* cuda = std::get_if<client::CudaMemory>(&registration_->memory);
  if (cuda != nullptr) return cuda->CopyTo(bytes);
  const absl::Status fits = client::CheckFits(bytes.size(), size_bytes());
  if (fits.ok()) std::memcpy(bytes.data(), data(), bytes.size());
  return fits;
}

absl::StatusOr<SharedBuffer> SharedBuffer::Register(
    std::shared_ptr<client::SessionState> session, const std::string& device,
    client::MemoryFile memory) {
  const uint64_t tag = session->NextTag();
  const absl::Status sent = client::SendDescriptor(
      session->side_socket(), session->side_token(), tag, memory.fd());
  if (!sent.ok()) return sent;
  v1::RegisterRequest request;
  request.mutable_memfd()->set_tag(tag);
  request.set_size_bytes(memory.size_bytes());
  return Registration::Make(std::move(session), device, std::move(request),
                            std::move(memory));
}

absl::StatusOr<SharedBuffer> SharedBuffer::Register(
    std::shared_ptr<client::SessionState> session, const std::string& device,
    client::CudaMemory memory) {
  const absl::StatusOr<ExportedMemory> exported = memory.Export();
  if (!exported.ok()) return exported.status();
  v1::RegisterRequest request;
  request.mutable_cuda_ipc()->set_handle(exported->handle);
  request.mutable_cuda_ipc()->set_device_uuid(memory.context().device().uuid);
  request.set_offset_bytes(exported->offset_bytes);
  request.set_size_bytes(memory.size_bytes());
  return Registration::Make(std::move(session), device, std::move(request),
                            std::move(memory));
}

}  // namespace kiln
