#ifndef KILN_SERVER_QUEUED_WRITER_H_
#define KILN_SERVER_QUEUED_WRITER_H_

#include <grpcpp/support/server_callback.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "cache/mutex.h"
#include "server/call.h"

namespace kiln {

// The answer of a server-streaming call, written from any thread: messages are
// queued and sent one after the other, then the status. Lives until gRPC is
// done with it and nobody holds it.
template <typename Message>
class QueuedWriter : public grpc::ServerWriteReactor<Message> {
 public:
  static std::shared_ptr<QueuedWriter> Start(
      Activity& activity, grpc::CallbackServerContext* context,
      const Peer& peer, const char* method) {
    std::shared_ptr<QueuedWriter> writer(
        new QueuedWriter(activity, context, peer, method));
    writer->self_ = writer;
    return writer;
  }

  Call& call() { return call_; }

  // Dropped once closed.
  void Push(Message message) KILN_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (status_) return;
      queue_.push_back(std::move(message));
      if (queue_.size() > 1) return;
    }
    Proceed();
  }

  // Ends the stream after what is queued. The first call counts.
  void Close(const absl::Status& status) KILN_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (status_) return;
      status_ = status;
      if (!queue_.empty()) return;
    }
    Proceed();
  }

  bool closed() const KILN_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return status_.has_value();
  }

  // Runs when the stream is over, however it ended. Set before the writer is
  // given to gRPC.
  void OnEnd(std::function<void()> end) { end_ = std::move(end); }

 private:
  QueuedWriter(Activity& activity, grpc::CallbackServerContext* context,
               const Peer& peer, const char* method)
      : call_(activity, context, peer, method) {}

  // Starts what comes next, outside the lock, because gRPC may call back at
  // once. Only one thread at a time gets here: the one that made the queue
  // non-empty, that closed an empty one, or that finished a write.
  void Proceed() KILN_EXCLUDES(mutex_) {
    const Message* next = nullptr;
    std::optional<absl::Status> status;
    {
      MutexLock lock(mutex_);
      if (!queue_.empty()) {
        next = &queue_.front();
      } else {
        status = status_;
      }
    }
    if (next != nullptr) {
      this->StartWrite(next);
    } else if (status) {
      this->Finish(call_.Finish(*status));
    }
  }

  void OnWriteDone(bool ok) override {
    {
      MutexLock lock(mutex_);
      queue_.pop_front();
      if (!ok) queue_.clear();
      if (!ok && !status_) status_ = absl::CancelledError("The client is gone");
      if (queue_.empty() && !status_) return;
    }
    Proceed();
  }

  void OnCancel() override {
    Close(absl::CancelledError("The client gave up"));
  }

  void OnDone() override {
    if (end_) end_();
    const std::shared_ptr<QueuedWriter> last = std::move(self_);
  }

  Call call_;
  std::function<void()> end_;
  mutable Mutex mutex_;
  std::deque<Message> queue_ KILN_GUARDED_BY(mutex_);  // front: being written
  std::optional<absl::Status> status_ KILN_GUARDED_BY(mutex_);
  std::shared_ptr<QueuedWriter> self_;  // until OnDone
};

}  // namespace kiln

#endif  // KILN_SERVER_QUEUED_WRITER_H_
