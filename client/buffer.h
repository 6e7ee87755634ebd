#ifndef KILN_CLIENT_BUFFER_H_
#define KILN_CLIENT_BUFFER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace kiln {

namespace client {
class MemoryFile;
class SessionState;
}  // namespace client

// Memory mapped here and registered with the daemon, for plans to read and
// write; nothing is copied. Made by Session::CreateBuffer, which keeps the
// session open as long as this lives. Destruction unregisters it, after calls
// that use it. Movable; the mapping stays at its address.
class SharedBuffer {
 public:
  SharedBuffer(SharedBuffer&&) noexcept;
  SharedBuffer& operator=(SharedBuffer&&) noexcept;
  ~SharedBuffer();

  void* data() const;
  int64_t size_bytes() const;
  // The memory as elements, as many as fit: As<float>() for f32.
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
  explicit SharedBuffer(std::unique_ptr<Registration> registration);
  std::unique_ptr<Registration> registration_;
};

}  // namespace kiln

#endif  // KILN_CLIENT_BUFFER_H_
