#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "proto/artifact_converter.h"
#include "proto/file_descriptor.h"
#include "server/child_process.h"
#include "server/executor_artifacts.h"
#include "server/executor_backend.h"
#include "server/ipc_channel.h"
#include "server/process_converter.h"
#include "server/roles.h"

namespace kiln {
namespace {

// Parsed artifacts, in bytes of their messages: some thousand typical ones.
constexpr int64_t kArtifactCacheBytes = int64_t{256} << 20;

// Answers requests one after the other on one backend.
class Executor {
 public:
  explicit Executor(ExecutionBackend* backend) : backend_(*backend) {}

  ipc::Reply Answer(ipc::Request request, FileDescriptor descriptor) {
    ipc::Reply reply;
    reply.set_id(request.id());
    absl::Status status = Dispatch(&request, std::move(descriptor), &reply);
    if (backend_.poisoned()) {
      status = absl::AbortedError(status.ok() ? "The device is lost."
                                              : std::string(status.message()));
      reply.set_fatal(true);
    }
    if (!status.ok()) *reply.mutable_failure() = ToProto(status);
    return reply;
  }

 private:
  absl::Status Dispatch(ipc::Request* request, FileDescriptor descriptor,
                        ipc::Reply* reply) {
    switch (request->body_case()) {
      case ipc::Request::kDescribe:
        *reply->mutable_described() = ToProto(backend_.Describe());
        return absl::OkStatus();
      case ipc::Request::kOpen:
        return Open(request->open(), std::move(descriptor), reply);
      case ipc::Request::kClose:
        backend_.Close(request->close().memory());
        reply->mutable_closed();
        return absl::OkStatus();
      case ipc::Request::kExecute:
        return Execute(*request->mutable_execute(), reply);
      case ipc::Request::kEndSession:
        backend_.EndSession(request->end_session().session());
        return absl::OkStatus();
      default:
        return absl::InternalError("The executor has no such request.");
    }
  }

  absl::Status Open(const ipc::Open& open, FileDescriptor descriptor,
                    ipc::Reply* reply) {
    MemorySource source;
    if (open.ipc_handle().empty()) {
      source = MemoryDescriptor{descriptor.Release()};
    } else {
      source = MemoryIpcHandle{open.ipc_handle()};
    }
    auto opened = backend_.Open(std::move(source));
    if (!opened.ok()) return opened.status();
    reply->mutable_opened()->set_memory(opened->id);
    reply->mutable_opened()->set_size_bytes(opened->size_bytes);
    return absl::OkStatus();
  }

  absl::Status Execute(const ipc::Execute& execute, ipc::Reply* reply) {
    if (!execute.artifact().empty()) {
      auto artifact = ParseArtifact(execute.artifact());
      if (!artifact.ok()) return artifact.status();
      artifacts_.Put(execute.key(), *std::move(artifact),
                     static_cast<int64_t>(execute.artifact().size()));
    }
    const Artifact* artifact = artifacts_.Get(execute.key());
    if (artifact == nullptr) {
      reply->mutable_need_artifact();
      return absl::OkStatus();
    }
    ExecuteJob job;
    job.session = execute.session();
    job.parameter_version = execute.parameter_version();
    for (const ipc::SlotBinding& slot : execute.slots()) {
      job.slots.push_back({slot.memory(), slot.offset_bytes()});
    }
    auto device_us = backend_.Execute(*artifact, job);
    if (!device_us.ok()) return device_us.status();
    reply->mutable_executed()->set_device_us(*device_us);
    return absl::OkStatus();
  }

  ExecutionBackend& backend_;
  ExecutorArtifacts artifacts_{kArtifactCacheBytes};
};

void WriteNoCore() {
  const rlimit none{0, 0};  // a core file would hold clients' data
  setrlimit(RLIMIT_CORE, &none);
}

}  // namespace

int RunExecutor(int fd, const std::string& device) {
  IpcChannel channel{FileDescriptor(fd)};
  DieWithParent();
  WriteNoCore();
  auto backend = CreateBackend(device);
  ipc::Reply first;
  if (backend.ok()) {
    first.mutable_ready()->set_uuid((*backend)->Describe().uuid);
  } else {
    *first.mutable_failure() = ToProto(backend.status());
  }
  if (!channel.Send(first).ok() || !backend.ok()) return 1;

  Executor executor(backend->get());
  while (true) {
    ipc::Request request;
    FileDescriptor descriptor;
    const absl::Status received = channel.Receive(&request, &descriptor);
    if (absl::IsUnavailable(received)) return 0;
    if (!received.ok()) return 1;
    const bool silent = request.has_end_session();
    const ipc::Reply reply =
        executor.Answer(std::move(request), std::move(descriptor));
    if ((!silent || reply.fatal()) && !channel.Send(reply).ok()) return 0;
    // Destructors of a poisoned device could hang.
    if (reply.fatal()) _exit(1);
  }
}

}  // namespace kiln
