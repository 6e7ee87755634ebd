#ifndef KILN_SERVER_EVENT_LOOP_H_
#define KILN_SERVER_EVENT_LOOP_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cache/mutex.h"
#include "proto/file_descriptor.h"

namespace kiln {

// A thread that waits for descriptors and timers and runs what they ask for.
// Everything but Post and Stop is for that thread only.
class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Id = uint64_t;  // of a watch or a timer; 0 is none

  // `name` is the thread's, at most 15 characters.
  explicit EventLoop(const std::string& name);
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;
  ~EventLoop();  // Stop

  // Runs `task` on the thread, after all tasks posted before. Thread-safe;
  // tasks posted after Stop are dropped.
  void Post(std::function<void()> task);

  // Runs what is posted, then ends the thread. Thread-safe, not from the loop.
  void Stop();

  // Calls `ready` with the EPOLL* bits as long as any of `events` holds. The
  // descriptor must stay open until Unwatch.
  Id Watch(int fd, uint32_t events, std::function<void(uint32_t)> ready);
  void SetEvents(Id watch, uint32_t events);
  void Unwatch(Id watch);

  Id After(std::chrono::milliseconds delay, std::function<void()> task);
  void CancelTimer(Id timer);  // unknown ids are ignored

 private:
  struct Watched {
    int fd;
    std::shared_ptr<std::function<void(uint32_t)>> ready;
  };
  using TimerKey = std::pair<Clock::time_point, Id>;

  void Run();
  bool RunPosted();  // false: stopped
  void RunTimers();
  int WaitMs() const;

  FileDescriptor epoll_;
  FileDescriptor wakeup_;
  Id next_id_ = 1;
  std::map<Id, Watched> watched_;
  std::map<TimerKey, std::function<void()>> timers_;
  std::map<Id, TimerKey> timer_keys_;

  Mutex mutex_;
  std::vector<std::function<void()>> posted_ KILN_GUARDED_BY(mutex_);
  bool stopping_ KILN_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace kiln

#endif  // KILN_SERVER_EVENT_LOOP_H_
