#include "server/executor_process.h"

#include <utility>

#include "server/executor_process_loop.h"
#include "server/process_converter.h"

namespace kiln {
namespace {

absl::Status Unexpected() {
  return absl::InternalError("The executor answers another question.");
}

}  // namespace

std::unique_ptr<ExecutorProcess> ExecutorProcess::Create(Options options) {
  return std::unique_ptr<ExecutorProcess>(
      new ExecutorProcess(std::make_unique<Loop>(std::move(options))));
}

ExecutorProcess::ExecutorProcess(std::unique_ptr<Loop> loop)
    : loop_(std::move(loop)) {}

ExecutorProcess::~ExecutorProcess() = default;

void ExecutorProcess::Describe(Described done) {
  Loop::Call call;
  call.request.mutable_describe();
  call.done = [done](absl::StatusOr<ipc::Reply> reply) {
    if (!reply.ok()) return done(reply.status());
    if (!reply->has_described()) return done(Unexpected());
    done(FromProto(reply->described()));
  };
  loop_->Submit(std::move(call));
}

void ExecutorProcess::Open(MemorySource source, Opened done) {
  Loop::Call call;
  ipc::Open* open = call.request.mutable_open();
  if (const auto* memfd = std::get_if<MemoryDescriptor>(&source)) {
    call.descriptor.Reset(memfd->fd);
  } else {
    open->set_ipc_handle(std::get<MemoryIpcHandle>(source).bytes);
  }
  call.done = [done](absl::StatusOr<ipc::Reply> reply) {
    if (!reply.ok()) return done(reply.status());
    if (!reply->has_opened()) return done(Unexpected());
    OpenedMemory memory;
    memory.id = reply->opened().memory();
    memory.size_bytes = reply->opened().size_bytes();
    done(memory);
  };
  loop_->Submit(std::move(call));
}

void ExecutorProcess::Close(uint64_t memory, std::function<void()> done) {
  Loop::Call call;
  call.starts_process = false;
  call.request.mutable_close()->set_memory(memory);
  // Whatever the answer: the memory is not open any more.
  call.done = [done](const absl::StatusOr<ipc::Reply>&) {
    if (done != nullptr) done();
  };
  loop_->Submit(std::move(call));
}

void ExecutorProcess::Execute(const std::string& key,
                              std::shared_ptr<const std::string> artifact,
                              ExecuteJob job, Executed done) {
  Loop::Call call;
  ipc::Execute* execute = call.request.mutable_execute();
  execute->set_key(key);
  execute->set_session(job.session);
  execute->set_parameter_version(job.parameter_version);
  for (const SlotBinding& slot : job.slots) {
    ipc::SlotBinding* binding = execute->add_slots();
    binding->set_memory(slot.memory);
    binding->set_offset_bytes(slot.offset_bytes);
  }
  call.artifact = std::move(artifact);
  call.done = [done](absl::StatusOr<ipc::Reply> reply) {
    if (!reply.ok()) return done(reply.status());
    if (!reply->has_executed()) return done(Unexpected());
    done(reply->executed().device_us());
  };
  loop_->Submit(std::move(call));
}

void ExecutorProcess::EndSession(const std::string& session) {
  Loop::Call call;
  call.starts_process = false;
  call.request.mutable_end_session()->set_session(session);
  call.done = [](const absl::StatusOr<ipc::Reply>&) {};
  loop_->Submit(std::move(call));
}

std::string ExecutorProcess::state() const { return loop_->state(); }

int ExecutorProcess::pid() const { return loop_->pid(); }

}  // namespace kiln
