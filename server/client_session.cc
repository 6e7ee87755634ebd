#include "server/client_session.h"

#include <fmt/format.h>

#include <utility>

#include "server/errors.h"
#include "server/random_id.h"

namespace kiln {
namespace {

constexpr int kMaxBuffers = 4096;
// More than one plan binds at once.
constexpr size_t kMaxParked = 128;

}  // namespace

ClientSession::ClientSession(DeviceTable& devices)
    : devices_(devices),
      id_(ToHex(RandomBytes(16))),
      side_token_(RandomBytes(16)),
      buffers_(kMaxBuffers) {}

void ClientSession::SetStream(std::weak_ptr<Stream> stream) {
  MutexLock lock(mutex_);
  stream_ = std::move(stream);
}

std::shared_ptr<ClientSession::Stream> ClientSession::stream() const {
  MutexLock lock(mutex_);
  return stream_.lock();
}

void ClientSession::Push(const v1::SessionEvent& event) {
  if (const std::shared_ptr<Stream> to = stream()) to->Push(event);
}

void ClientSession::CloseStream(const absl::Status& status) {
  if (const std::shared_ptr<Stream> to = stream()) to->Close(status);
}

absl::Status ClientSession::Park(uint64_t tag, FileDescriptor fd) {
  MutexLock lock(mutex_);
  if (ended_) return UnknownSession(id_);
  if (parked_.size() >= kMaxParked) {
    return TooMany("descriptors that wait for Register", kMaxParked);
  }
  if (!parked_.emplace(tag, std::move(fd)).second) {
    return absl::AlreadyExistsError(
        fmt::format("A descriptor waits under tag {} already", tag));
  }
  return absl::OkStatus();
}

absl::StatusOr<FileDescriptor> ClientSession::TakeParked(uint64_t tag) {
  MutexLock lock(mutex_);
  const auto found = parked_.find(tag);
  if (found == parked_.end()) {
    return absl::FailedPreconditionError(fmt::format(
        "No descriptor came over the side socket under tag {}", tag));
  }
  FileDescriptor fd = std::move(found->second);
  parked_.erase(found);
  return fd;
}

absl::StatusOr<std::string> ClientSession::Add(BufferRegistry::Buffer buffer) {
  MutexLock lock(mutex_);
  return buffers_.Add(std::move(buffer));
}

absl::StatusOr<BufferRegistry::Bound> ClientSession::Bind(
    const std::string& device, std::span<const Slot> slots,
    std::span<const BufferRegistry::Binding> bindings) {
  MutexLock lock(mutex_);
  return buffers_.Bind(device, slots, bindings);
}

void ClientSession::Release(uint64_t lease) {
  std::vector<BufferRegistry::Freed> freed;
  bool last = false;
  {
    MutexLock lock(mutex_);
    freed = buffers_.Release(lease);
    last = ended_ && buffers_.idle();
  }
  Close(std::move(freed));
  if (last) devices_.EndSession(id_);
}

void ClientSession::Remove(const std::string& id, std::function<void()> done) {
  std::vector<BufferRegistry::Freed> freed;
  {
    MutexLock lock(mutex_);
    freed.push_back(buffers_.Remove(id, std::move(done)));
  }
  Close(std::move(freed));
}

std::vector<BufferRegistry::Info> ClientSession::List() const {
  MutexLock lock(mutex_);
  return buffers_.List();
}

void ClientSession::ExecutorRestarted(const std::string& device,
                                      const std::string& reason) {
  bool concerned = false;
  {
    MutexLock lock(mutex_);
    for (const BufferRegistry::Info& buffer : buffers_.List()) {
      concerned |= buffer.device == device;
    }
    buffers_.MarkLost(device);
  }
  if (!concerned) return;
  v1::SessionEvent event;
  event.mutable_executor_restarted()->set_device(device);
  event.mutable_executor_restarted()->set_reason(reason);
  Push(event);
}

void ClientSession::End() {
  std::vector<BufferRegistry::Freed> freed;
  bool last = false;
  {
    MutexLock lock(mutex_);
    if (std::exchange(ended_, true)) return;
    parked_.clear();
    freed = buffers_.RemoveAll();
    last = buffers_.idle();
  }
  Close(std::move(freed));
  if (last) devices_.EndSession(id_);
}

void ClientSession::Close(std::vector<BufferRegistry::Freed> freed) {
  for (BufferRegistry::Freed& buffer : freed) {
    const auto answer = [waiters = std::move(buffer.waiters)] {
      for (const auto& waiter : waiters) waiter();
    };
    if (buffer.memory) {
      devices_.Close(buffer.device, *buffer.memory, answer);
    } else {
      answer();
    }
  }
}

}  // namespace kiln
