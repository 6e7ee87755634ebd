#ifndef KILN_CLIENT_BUFFER_H_
#define KILN_CLIENT_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kiln {

namespace client {
class CudaMemory;
class MemoryFile;
class SessionState;
}  // namespace client

// Memory mapped here and registered with the daemon, for plans to read and
// write; executing copies nothing. Made by a Session, which stays open as long
// as this lives. Destruction unregisters it, after calls that use it, and then
// frees what Session::CreateBuffer allocated. Movable; the memory stays at its
// address.
class SharedBuffer {
 public:
  SharedBuffer(SharedBuffer&&) noexcept;
  SharedBuffer& operator=(SharedBuffer&&) noexcept;
  ~SharedBuffer();

  // An address of the GPU for a buffer of "cuda:N".
  void* data() const;
  int64_t size_bytes() const;
  // Copy to and from the start of the buffer; complete when they return.
  //
  // Errors: INVALID_ARGUMENT: more bytes than the buffer holds; ABORTED,
  // INTERNAL: the GPU's context has failed.
  absl::Status CopyFrom(std::span<const std::byte> bytes) const;
  absl::Status CopyTo(std::span<std::byte> bytes) const;
  // The memory as elements, as many as fit: As<float>() for f32. On "cpu".
  template <typename Element>
  std::span<Element> As() const {
    return {static_cast<Element*>(data()), size_bytes() / sizeof(Element)};
  }
  // 32 hexadecimal digits, random.
  const std::string& id() const;

 private:
  friend class Session;
  struct Registration;
  static absl::StatusOr<SharedBuffer> Register(
      std::shared_ptr<client::SessionState> session, const std::string& device,
      client::MemoryFile memory);
  static absl::StatusOr<SharedBuffer> Register(
      std::shared_ptr<client::SessionState> session, const std::string& device,
      client::CudaMemory memory);
  explicit SharedBuffer(std::unique_ptr<Registration> registration);
  std::unique_ptr<Registration> registration_;
};

}  // namespace kiln

#endif  // KILN_CLIENT_BUFFER_H_
