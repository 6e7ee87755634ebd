#include "server/child_channel.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <utility>

namespace kiln {
namespace {

// Kills `process` and waits for its end without holding up the loop.
void ReapInBackground(EventLoop* loop,
                      const std::shared_ptr<ChildProcess>& process,
                      const std::function<void()>& reaped) {
  process->Kill();
  auto watch = std::make_shared<EventLoop::Id>(0);
  const int pidfd = process->pidfd();
  *watch =
      loop->Watch(pidfd, EPOLLIN, [loop, process, watch, reaped](uint32_t) {
        process->Reap();
        loop->Unwatch(*watch);
        if (reaped != nullptr) reaped();
      });
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildChannel>> ChildChannel::Start(
    EventLoop* loop, const ChildProcess::Options& options, OnReply on_reply,
    OnEnd on_end) {
  auto pair = IpcChannel::MakePair();
  if (!pair.ok()) return pair.status();
  auto process = ChildProcess::Start(options, std::move(pair->second));
  if (!process.ok()) return process.status();
  return std::unique_ptr<ChildChannel>(
      new ChildChannel(loop, std::move(*process), std::move(pair->first),
                       std::move(on_reply), std::move(on_end)));
}

ChildChannel::ChildChannel(EventLoop* loop, ChildProcess process,
                           FileDescriptor socket, OnReply on_reply,
                           OnEnd on_end)
    : loop_(loop),
      process_(std::make_shared<ChildProcess>(std::move(process))),
      channel_(std::move(socket)),
      on_reply_(std::move(on_reply)),
      on_end_(std::move(on_end)) {
  socket_watch_ = loop_->Watch(channel_.fd(), EPOLLIN,
                               [this](uint32_t events) { OnSocket(events); });
  exit_watch_ =
      loop_->Watch(process_->pidfd(), EPOLLIN, [this](uint32_t) { OnExit(); });
}

ChildChannel::~ChildChannel() {
  *alive_ = false;
  loop_->Unwatch(socket_watch_);
  loop_->Unwatch(exit_watch_);
  if (process_->pid() != 0) {
    ReapInBackground(loop_, process_, reaped_);
  }
}

absl::Status ChildChannel::Send(const ipc::Request& request,
                                FileDescriptor descriptor) {
  absl::Status status = channel_.Queue(request, std::move(descriptor));
  if (status.ok()) Flush();
  return status;
}

void ChildChannel::Flush() {
  // A send that fails is followed by the end of file or of the process.
  const bool broken = !channel_.Flush().ok();
  const bool writing = channel_.has_output() && !broken;
  if (writing == writing_ || socket_watch_ == 0) return;
  writing_ = writing;
  loop_->SetEvents(socket_watch_, writing ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void ChildChannel::OnSocket(uint32_t events) {
  if ((events & EPOLLOUT) != 0) Flush();
  if ((events & ~EPOLLOUT) != 0) Drain();
}

void ChildChannel::OnExit() {
  if (!Drain()) return;
  End(process_->Reap());
}

bool ChildChannel::Drain() {
  const std::shared_ptr<bool> alive = alive_;
  while (*alive) {
    ipc::Reply reply;
    FileDescriptor unused;
    absl::StatusOr<bool> received = channel_.TryReceive(&reply, &unused);
    if (received.ok() && !*received) return true;
    if (received.ok()) {
      const OnReply on_reply = on_reply_;
      on_reply(std::move(reply));
    } else if (absl::IsUnavailable(received.status())) {
      // Its end says more than the closed socket, and should be at hand.
      loop_->Unwatch(std::exchange(socket_watch_, 0));
      process_->Kill();
      return true;
    } else {
      std::string cause(received.status().message());
      cause.pop_back();  // a sentence's full stop
      End(std::move(cause));
      return false;
    }
  }
  return false;
}

void ChildChannel::End(std::string cause) {
  const OnEnd on_end = std::move(on_end_);
  on_end(std::move(cause));
}

}  // namespace kiln
