#include "server/register_call.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <string>
#include <utility>

#include "jit/plan/errors.h"
#include "server/errors.h"

namespace kiln {
namespace {

constexpr size_t kIpcHandleBytes = 64;

struct Memory {
  MemorySource source;
  std::string identity;  // equal for the same memory
};

absl::StatusOr<Memory> FromMemfd(ClientSession& session,
                                 const std::string& device, uint64_t tag) {
  absl::StatusOr<FileDescriptor> fd = session.TakeParked(tag);
  if (!fd.ok()) return fd.status();
  if (device != "cpu") {
    return InvalidField("memory", "does not suit the device",
                        "memfd for " + device, "memfd for cpu");
  }
  struct stat info = {};
  if (fstat(fd->get(), &info) != 0) {
    return absl::InvalidArgumentError("The descriptor cannot be examined");
  }
  return Memory{MemoryDescriptor{fd->Release()},
                fmt::format("{}:{}", info.st_dev, info.st_ino)};
}

absl::StatusOr<Memory> FromIpc(Front& front, const std::string& device,
                               const v1::CudaIpcHandle& handle) {
  if (device == "cpu") {
    return InvalidField("memory", "does not suit the device",
                        "cuda_ipc for cpu", "memfd for cpu");
  }
  if (handle.handle().size() != kIpcHandleBytes) {
    return InvalidField("cuda_ipc.handle", "has a wrong size",
                        fmt::format("{} bytes", handle.handle().size()),
                        fmt::format("{} bytes", kIpcHandleBytes));
  }
  const std::string uuid = front.devices->UuidOf(device);
  if (!uuid.empty() && handle.device_uuid() != uuid) {
    return absl::FailedPreconditionError(fmt::format(
        "The memory is on the GPU {}, but {} is {}; CUDA_VISIBLE_DEVICES of "
        "client and daemon may differ",
        handle.device_uuid(), device, uuid));
  }
  return Memory{MemoryIpcHandle{handle.handle()}, handle.handle()};
}

absl::StatusOr<Memory> TakeMemory(Front& front, ClientSession& session,
                                  const v1::RegisterRequest& request) {
  switch (request.memory_case()) {
    case v1::RegisterRequest::kMemfd:
      return FromMemfd(session, request.device(), request.memfd().tag());
    case v1::RegisterRequest::kCudaIpc:
      return FromIpc(front, request.device(), request.cuda_ipc());
    default:
      return InvalidField("memory", "is not set", "nothing",
                          "memfd or cuda_ipc");
  }
}

// A Register whose memory is being opened.
struct Opening {
  Front& front;
  std::shared_ptr<PendingCall> call;
  std::shared_ptr<ClientSession> session;
  std::string device;
  std::string identity;
  int64_t offset_bytes;
  int64_t size_bytes;
  v1::RegisterResponse* response;

  void Answer(const absl::Status& status) const {
    if (call->Claim()) call->Finish(status);
  }
  void OnOpened(const absl::StatusOr<OpenedMemory>& opened) const;
  absl::StatusOr<std::string> AddBuffer(const OpenedMemory& opened,
                                        int64_t* size) const;
};

absl::StatusOr<std::string> Opening::AddBuffer(const OpenedMemory& opened,
                                               int64_t* size) const {
  const absl::StatusOr<int64_t> range =
      ResolveRange(offset_bytes, size_bytes, opened.size_bytes);
  if (!range.ok()) return range.status();
  *size = *range;
  return session->Add({device, opened.id, identity, offset_bytes, *range});
}

void Opening::OnOpened(const absl::StatusOr<OpenedMemory>& opened) const {
  if (!opened.ok()) return Answer(opened.status());
  int64_t size = 0;
  const absl::StatusOr<std::string> id = AddBuffer(*opened, &size);
  if (!id.ok()) {
    front.devices->Close(device, opened->id, [] {});
    return Answer(id.status());
  }
  // A client that gave up never learns the id.
  if (!call->Claim()) return session->Remove(*id, [] {});
  response->set_buffer(*id);
  response->set_size_bytes(size);
  call->Finish(absl::OkStatus());
}

absl::Status StartOpening(Front& front, std::shared_ptr<PendingCall> call,
                          const v1::RegisterRequest& request,
                          v1::RegisterResponse* response) {
  const absl::Status admitted = call->call().admitted();
  if (!admitted.ok()) return admitted;
  const absl::StatusOr<std::shared_ptr<ClientSession>> session =
      front.sessions->Find(request.session());
  if (!session.ok()) return session.status();
  const absl::StatusOr<std::shared_ptr<ExecutorProcess>> executor =
      front.devices->Find(request.device());
  if (!executor.ok()) return executor.status();
  absl::StatusOr<Memory> memory = TakeMemory(front, **session, request);
  if (!memory.ok()) return memory.status();

  const Opening opening{front,
                        std::move(call),
                        *session,
                        request.device(),
                        std::move(memory->identity),
                        request.offset_bytes(),
                        request.size_bytes(),
                        response};
  (*executor)->Open(std::move(memory->source),
                    [opening](const absl::StatusOr<OpenedMemory>& opened) {
                      opening.OnOpened(opened);
                    });
  return absl::OkStatus();
}

}  // namespace

void StartRegisterCall(Front& front, std::shared_ptr<PendingCall> call,
                       const v1::RegisterRequest& request,
                       v1::RegisterResponse* response) {
  const absl::Status status = StartOpening(front, call, request, response);
  if (!status.ok() && call->Claim()) call->Finish(status);
}

}  // namespace kiln
