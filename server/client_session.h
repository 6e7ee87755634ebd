#ifndef KILN_SERVER_CLIENT_SESSION_H_
#define KILN_SERVER_CLIENT_SESSION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cache/mutex.h"
#include "kiln/v1/service.pb.h"
#include "proto/file_descriptor.h"
#include "server/buffer_registry.h"
#include "server/device_table.h"

namespace kiln {

// One client's session: its buffers, the descriptors that wait to become
// buffers, and the way to its event stream. Ends with that stream; memory is
// closed when the last call that uses it is done. Thread-safe.
class ClientSession {
 public:
  // Where events go. Called from any thread, without locks of the session.
  class Stream {
   public:
    virtual ~Stream() = default;
    virtual void Push(const v1::SessionEvent& event) = 0;
    virtual void Close(const absl::Status& status) = 0;
  };

  explicit ClientSession(DeviceTable& devices);

  const std::string& id() const { return id_; }
  const std::string& side_token() const { return side_token_; }

  void SetStream(std::weak_ptr<Stream> stream);
  void Push(const v1::SessionEvent& event);
  // Ends the stream with `status`; the stream then ends the session.
  void CloseStream(const absl::Status& status);

  // Keeps a descriptor that came over the side socket until Register takes it.
  // Errors: RESOURCE_EXHAUSTED: too many wait; ALREADY_EXISTS: the tag waits.
  absl::Status Park(uint64_t tag, FileDescriptor fd);
  // Errors: FAILED_PRECONDITION: nothing waits under `tag`.
  absl::StatusOr<FileDescriptor> TakeParked(uint64_t tag);

  // BufferRegistry's functions, with the memory of freed buffers closed.
  absl::StatusOr<std::string> Add(BufferRegistry::Buffer buffer);
  absl::StatusOr<BufferRegistry::Bound> Bind(
      const std::string& device, std::span<const Slot> slots,
      std::span<const BufferRegistry::Binding> bindings);
  void Release(uint64_t lease);
  void Remove(const std::string& id, std::function<void()> done);
  std::vector<BufferRegistry::Info> List() const;

  // Marks the device's buffers as lost and tells the client.
  void ExecutorRestarted(const std::string& device, const std::string& reason);

  // Removes everything; what is in use goes with the last lease.
  void End();

 private:
  void Close(std::vector<BufferRegistry::Freed> freed);
  std::shared_ptr<Stream> stream() const;

  DeviceTable& devices_;
  const std::string id_;
  const std::string side_token_;

  mutable Mutex mutex_;
  BufferRegistry buffers_ KILN_GUARDED_BY(mutex_);
  std::map<uint64_t, FileDescriptor> parked_ KILN_GUARDED_BY(mutex_);
  std::weak_ptr<Stream> stream_ KILN_GUARDED_BY(mutex_);
  bool ended_ KILN_GUARDED_BY(mutex_) = false;
};

}  // namespace kiln

#endif  // KILN_SERVER_CLIENT_SESSION_H_
