#include "server/event_loop.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

namespace kiln {
namespace {

constexpr EventLoop::Id kWakeup = 0;

void Require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

EventLoop::EventLoop(const std::string& name)
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wakeup_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  Require(epoll_.valid() && wakeup_.valid());
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeup;
  Require(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wakeup_.get(), &event) == 0);
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), name.c_str());
}

EventLoop::~EventLoop() { Stop(); }

void EventLoop::Post(std::function<void()> task) {
  {
    MutexLock lock(mutex_);
    if (stopping_) return;
    posted_.push_back(std::move(task));
  }
  eventfd_write(wakeup_.get(), 1);
}

void EventLoop::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  eventfd_write(wakeup_.get(), 1);
  if (thread_.joinable()) thread_.join();
}

EventLoop::Id EventLoop::Watch(int fd, uint32_t events,
                               std::function<void(uint32_t)> ready) {
  const Id id = next_id_++;
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  Require(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0);
  watched_[id] = {
      fd, std::make_shared<std::function<void(uint32_t)>>(std::move(ready))};
  return id;
}

void EventLoop::SetEvents(Id watch, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = watch;
  Require(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, watched_.at(watch).fd,
                    &event) == 0);
}

void EventLoop::Unwatch(Id watch) {
  const auto found = watched_.find(watch);
  if (found == watched_.end()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.fd, nullptr);
  watched_.erase(found);
}

EventLoop::Id EventLoop::After(std::chrono::milliseconds delay,
                               std::function<void()> task) {
  const Id id = next_id_++;
  const TimerKey key{Clock::now() + delay, id};
  timers_[key] = std::move(task);
  timer_keys_[id] = key;
  return id;
}

void EventLoop::CancelTimer(Id timer) {
  const auto found = timer_keys_.find(timer);
  if (found == timer_keys_.end()) return;
  timers_.erase(found->second);
  timer_keys_.erase(found);
}

void EventLoop::Run() {
  std::array<epoll_event, 64> events;
  while (RunPosted()) {
    RunTimers();
    const int count = epoll_wait(epoll_.get(), events.data(),
                                 static_cast<int>(events.size()), WaitMs());
    Require(count >= 0 || errno == EINTR);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == kWakeup) {
        eventfd_t ignored;
        eventfd_read(wakeup_.get(), &ignored);
        continue;
      }
      // An earlier callback of this round may have ended this watch.
      const auto found = watched_.find(events[i].data.u64);
      if (found == watched_.end()) continue;
      const auto ready = found->second.ready;
      (*ready)(events[i].events);
    }
  }
}

bool EventLoop::RunPosted() {
  std::vector<std::function<void()>> tasks;
  bool stopping;
  {
    MutexLock lock(mutex_);
    tasks.swap(posted_);
    stopping = stopping_;
  }
  for (const auto& task : tasks) task();
  return !stopping;
}

void EventLoop::RunTimers() {
  const Clock::time_point now = Clock::now();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    const std::function<void()> task = std::move(timers_.begin()->second);
    timer_keys_.erase(timers_.begin()->first.second);
    timers_.erase(timers_.begin());
    task();
  }
}

int EventLoop::WaitMs() const {
  if (timers_.empty()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      timers_.begin()->first.first - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000));
}

}  // namespace kiln
