#include "server/event_loop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <atomic>
#include <vector>

#include "tests/server/waiting.h"

namespace kiln {
namespace {

using std::chrono::milliseconds;

TEST(EventLoopTest, RunsWhatIsPostedBeforeStopInOrder) {
  EventLoop loop("test");
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) {
    loop.Post([&order, i] { order.push_back(i); });
  }
  loop.Stop();
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

TEST(EventLoopTest, RunsTimersByTheirTime) {
  std::vector<int> order;
  std::atomic<bool> done{false};
  EventLoop loop("test");
  loop.Post([&] {
    loop.After(milliseconds(30), [&] { done = true; });
    loop.After(milliseconds(20), [&] { order.push_back(2); });
    loop.After(milliseconds(10), [&] { order.push_back(1); });
    const EventLoop::Id never =
        loop.After(milliseconds(15), [&] { order.push_back(0); });
    loop.CancelTimer(never);
  });
  ASSERT_TRUE(Eventually([&] { return done.load(); }));
  loop.Stop();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

// Prevents that a callback runs on what an earlier one of the same round
// destroyed.
TEST(EventLoopTest, DoesNotCallAWatchThatEndedInTheSameRound) {
  const FileDescriptor one(eventfd(1, EFD_CLOEXEC));
  const FileDescriptor two(eventfd(1, EFD_CLOEXEC));
  std::atomic<int> calls{0};
  EventLoop loop("test");
  loop.Post([&] {
    auto ids = std::make_shared<std::vector<EventLoop::Id>>();
    const auto end_both = [&, ids](uint32_t) {
      ++calls;
      for (const EventLoop::Id id : *ids) loop.Unwatch(id);
    };
    ids->push_back(loop.Watch(one.get(), EPOLLIN, end_both));
    ids->push_back(loop.Watch(two.get(), EPOLLIN, end_both));
  });
  ASSERT_TRUE(Eventually([&] { return calls.load() > 0; }));
  std::this_thread::sleep_for(milliseconds(20));
  loop.Stop();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace kiln
