#ifndef KILN_SERVER_CHILD_CHANNEL_H_
#define KILN_SERVER_CHILD_CHANNEL_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/child_process.h"
#include "server/event_loop.h"
#include "server/ipc.pb.h"
#include "server/ipc_channel.h"

namespace kiln {

// A child process and the socket to it, served by an event loop. Destruction
// kills the process; it is reaped in the background. Lives on the loop's
// thread; either callback may destroy it.
class ChildChannel {
 public:
  // A message of the child.
  using OnReply = std::function<void(ipc::Reply)>;
  // Called once, after the last message, when the child has ended, closed its
  // socket or sent nonsense, with a phrase saying which ("signal 11
  // (Segmentation fault)"). Nothing is left to do but destroy the channel.
  using OnEnd = std::function<void(std::string cause)>;

  // Errors: those of ChildProcess::Start.
  static absl::StatusOr<std::unique_ptr<ChildChannel>> Start(
      EventLoop* loop, const ChildProcess::Options& options, OnReply on_reply,
      OnEnd on_end);
  ChildChannel(const ChildChannel&) = delete;
  ChildChannel& operator=(const ChildChannel&) = delete;
  ~ChildChannel();

  // Queues a request. Errors: RESOURCE_EXHAUSTED: it is too large. A child
  // that is gone is told through OnEnd.
  absl::Status Send(const ipc::Request& request,
                    FileDescriptor descriptor = FileDescriptor());

  // 0: the process has ended and is reaped.
  pid_t pid() const { return process_->pid(); }

  // Has `reaped` called, on the loop, when the process that destruction kills
  // is gone.
  void WhenReaped(std::function<void()> reaped) { reaped_ = std::move(reaped); }

 private:
  ChildChannel(EventLoop* loop, ChildProcess process, FileDescriptor socket,
               OnReply on_reply, OnEnd on_end);

  void Flush();
  void OnSocket(uint32_t events);
  void OnExit();
  // Hands on all whole messages. False: this object is gone.
  bool Drain();
  void End(std::string cause);

  EventLoop* const loop_;
  std::shared_ptr<ChildProcess> process_;
  IpcChannel channel_;
  OnReply on_reply_;
  OnEnd on_end_;
  std::function<void()> reaped_;
  EventLoop::Id socket_watch_ = 0;
  EventLoop::Id exit_watch_ = 0;
  bool writing_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace kiln

#endif  // KILN_SERVER_CHILD_CHANNEL_H_
