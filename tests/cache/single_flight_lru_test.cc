#include "cache/single_flight_lru.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <random>
#include <thread>

namespace kiln {
namespace {

using Lru = SingleFlightLru<std::string>;
using Result = absl::StatusOr<Lru::Shared>;

int64_t SizeOf(const std::string& value) {
  return static_cast<int64_t>(value.size());
}

Lru::Shared Value(const std::string& text) {
  return std::make_shared<const std::string>(text);
}

// Collects what a waiter is told.
struct Inbox {
  std::vector<Result> results;
  Lru::Waiter waiter() {
    return [this](const Result& result) { results.push_back(result); };
  }
};

TEST(SingleFlightLruTest, TheFirstLeadsTheOthersJoin) {
  Lru lru(100, SizeOf);
  Inbox inbox;
  EXPECT_EQ(lru.Find("a", inbox.waiter()).outcome, Lru::Outcome::kLead);
  EXPECT_EQ(lru.Find("a", inbox.waiter()).outcome, Lru::Outcome::kJoined);
  EXPECT_EQ(lru.Find("b", inbox.waiter()).outcome, Lru::Outcome::kLead);
  EXPECT_TRUE(inbox.results.empty());

  lru.Complete("a", Value("result"));
  ASSERT_EQ(inbox.results.size(), 2);
  EXPECT_EQ(**inbox.results[0], "result");
  EXPECT_EQ(**inbox.results[1], "result");
  const Lru::Lookup hit = lru.Find("a", inbox.waiter());
  EXPECT_EQ(hit.outcome, Lru::Outcome::kHit);
  EXPECT_EQ(*hit.value, "result");
  EXPECT_EQ(inbox.results.size(), 2);
}

// Prevents one failed compile from failing all later ones.
TEST(SingleFlightLruTest, AFailureIsHandedOutAndForgotten) {
  Lru lru(100, SizeOf);
  Inbox inbox;
  lru.Find("a", inbox.waiter());
  lru.Find("a", inbox.waiter());
  lru.Complete("a", absl::InternalError("first"));
  ASSERT_EQ(inbox.results.size(), 2);
  EXPECT_EQ(inbox.results[1].status(), absl::InternalError("first"));

  EXPECT_EQ(lru.Find("a", inbox.waiter()).outcome, Lru::Outcome::kLead);
  lru.Complete("a", Value("second"));
  EXPECT_EQ(**inbox.results[2], "second");
  EXPECT_EQ(lru.counters().misses, 2);
}

TEST(SingleFlightLruTest, OnlyTheLastWaitersCancelEndsTheWork) {
  Lru lru(100, SizeOf);
  Inbox inbox;
  const uint64_t first = lru.Find("a", inbox.waiter()).waiter_id;
  const uint64_t second = lru.Find("a", inbox.waiter()).waiter_id;
  EXPECT_FALSE(lru.Cancel("a", first));
  EXPECT_FALSE(lru.Cancel("a", first));
  EXPECT_TRUE(lru.Cancel("a", second));
  EXPECT_FALSE(lru.Cancel("a", second));
  EXPECT_FALSE(lru.Cancel("unknown", second));
  lru.Complete("a", absl::CancelledError("stopped"));
  EXPECT_TRUE(inbox.results.empty());
  EXPECT_EQ(lru.Find("a", inbox.waiter()).outcome, Lru::Outcome::kLead);
}

TEST(SingleFlightLruTest, ACancelledLeaderStillServesThoseWhoJoined) {
  Lru lru(100, SizeOf);
  Inbox leader, joiner;
  const uint64_t id = lru.Find("a", leader.waiter()).waiter_id;
  lru.Find("a", joiner.waiter());
  EXPECT_FALSE(lru.Cancel("a", id));
  lru.Complete("a", Value("x"));
  EXPECT_TRUE(leader.results.empty());
  EXPECT_EQ(joiner.results.size(), 1);
}

// Prevents a newcomer from getting the CANCELLED that an earlier caller, gone
// by now, has caused.
TEST(SingleFlightLruTest, WhoComesAfterTheLastCancelLeadsAnew) {
  Lru lru(100, SizeOf);
  Inbox gone, newcomer;
  EXPECT_TRUE(lru.Cancel("a", lru.Find("a", gone.waiter()).waiter_id));
  EXPECT_EQ(lru.Find("a", newcomer.waiter()).outcome, Lru::Outcome::kLead);
  EXPECT_EQ(lru.Find("a", newcomer.waiter()).outcome, Lru::Outcome::kJoined);

  lru.Complete("a", absl::CancelledError("stopped"));
  EXPECT_TRUE(newcomer.results.empty());
  lru.Complete("a", Value("good"));
  ASSERT_EQ(newcomer.results.size(), 2);
  EXPECT_EQ(**newcomer.results[0], "good");
  EXPECT_TRUE(gone.results.empty());
}

TEST(SingleFlightLruTest, StoppedWorkThatSucceedsAnywayServesAll) {
  Lru lru(100, SizeOf);
  Inbox gone, newcomer;
  EXPECT_TRUE(lru.Cancel("a", lru.Find("a", gone.waiter()).waiter_id));
  lru.Find("a", newcomer.waiter());
  lru.Complete("a", Value("early"));
  EXPECT_EQ(newcomer.results.size(), 1);
  lru.Complete("a", Value("late"));
  EXPECT_EQ(newcomer.results.size(), 1);
  EXPECT_NE(lru.Peek("a"), nullptr);
}

// Prevents a deadlock: what waits for a result asks for the next one.
TEST(SingleFlightLruTest, WaitersMayCallBack) {
  Lru lru(100, SizeOf);
  int calls = 0;
  lru.Find("a", [&](const Result&) {
    EXPECT_EQ(lru.Find("a", nullptr).outcome, Lru::Outcome::kHit);
    lru.Erase("a");
    ++calls;
  });
  lru.Complete("a", Value("x"));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(lru.Peek("a"), nullptr);
}

// Prevents dropping half of the values when one more does not fit.
TEST(SingleFlightLruTest, EvictsNoMoreThanNeeded) {
  Lru lru(100, SizeOf);
  for (int i = 0; i < 10; ++i) {
    lru.Complete(std::to_string(i), Value(std::string(10, 'x')));
  }
  EXPECT_NE(lru.Peek("0"), nullptr);
  lru.Complete("10", Value(std::string(10, 'x')));
  EXPECT_EQ(lru.counters().evictions, 1);
  EXPECT_EQ(lru.Peek("1"), nullptr);
  EXPECT_NE(lru.Peek("0"), nullptr);
}

TEST(SingleFlightLruTest, HandsOutButDoesNotKeepTooLargeValues) {
  Lru lru(100, SizeOf);
  Inbox inbox;
  lru.Complete("small", Value("x"));
  lru.Find("large", inbox.waiter());
  lru.Complete("large", Value(std::string(101, 'x')));
  EXPECT_EQ(inbox.results.size(), 1);
  EXPECT_EQ(lru.Peek("large"), nullptr);
  EXPECT_NE(lru.Peek("small"), nullptr);
}

TEST(SingleFlightLruTest, ClearForgetsValuesNotFlights) {
  Lru lru(100, SizeOf);
  Inbox inbox;
  lru.Complete("a", Value("x"));
  lru.Find("b", inbox.waiter());
  lru.Clear();
  EXPECT_EQ(lru.counters().entries, 0);
  EXPECT_EQ(lru.counters().size_bytes, 0);
  EXPECT_EQ(lru.Find("b", inbox.waiter()).outcome, Lru::Outcome::kJoined);
  lru.Complete("b", Value("y"));
  EXPECT_EQ(inbox.results.size(), 2);
}

// Prevents evicting what is in use: the same order as a plain list keeps.
TEST(SingleFlightLruTest, AgreesWithTheModelOver200000Operations) {
  Lru lru(500, SizeOf);
  std::list<std::pair<std::string, int64_t>> model;  // most recent first
  int64_t model_bytes = 0;
  std::mt19937_64 random(11);
  for (int step = 0; step < 200'000; ++step) {
    const std::string key = std::to_string(random() % 60);
    const auto size = static_cast<int64_t>(random() % 40);
    auto found = std::find_if(model.begin(), model.end(),
                              [&](const auto& e) { return e.first == key; });
    if (random() % 2 == 0) {
      ASSERT_EQ(lru.Peek(key) != nullptr, found != model.end()) << step;
      if (found != model.end()) {
        model.splice(model.begin(), model, found);
      }
      continue;
    }
    lru.Complete(key, Value(std::string(static_cast<size_t>(size), 'x')));
    if (found != model.end()) {
      model_bytes -= found->second;
      model.erase(found);
    }
    while (model_bytes + size > 500) {
      model_bytes -= model.back().second;
      model.pop_back();
    }
    model.emplace_front(key, size);
    model_bytes += size;
    ASSERT_EQ(lru.counters().size_bytes, model_bytes) << step;
  }
}

// Prevents compiling the same kernel twice at once, and losing a reply, under
// 64 clients. Every fifth production fails.
TEST(SingleFlightLruTest, SixtyFourThreadsNeverLeadTwiceAtOnce) {
  constexpr int kThreads = 64, kKeys = 20, kRounds = 200;
  Lru lru(200, SizeOf);
  std::atomic<int> in_flight[kKeys] = {};
  std::atomic<int> overlaps = 0, asked = 0, answered = 0, wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const int number = (t + i * 7) % kKeys;
        const std::string key = "value of key " + std::to_string(number);
        ++asked;
        const auto lookup = lru.Find(key, [&, key](const Result& result) {
          ++answered;
          if (result.ok() && **result != key) ++wrong;
        });
        if (lookup.outcome == Lru::Outcome::kHit) {
          ++answered;
          if (*lookup.value != key) ++wrong;
        }
        if (lookup.outcome != Lru::Outcome::kLead) continue;
        if (++in_flight[number] != 1) ++overlaps;
        std::this_thread::yield();
        --in_flight[number];
        if (i % 5 == 0) {
          lru.Complete(key, absl::InternalError("no"));
        } else {
          lru.Complete(key, Value(key));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(answered, asked);
}

// Prevents a waiter from being called after, or in spite of, its cancel.
TEST(SingleFlightLruTest, CancelRacesWithComplete) {
  Lru lru(1 << 20, SizeOf);
  for (int round = 0; round < 500; ++round) {
    const std::string key = std::to_string(round);
    std::atomic<int> calls = 0;
    const auto lead = lru.Find(key, [&](const Result&) { ++calls; });
    const auto joined = lru.Find(key, [&](const Result&) { ++calls; });
    std::thread canceller([&] { lru.Cancel(key, joined.waiter_id); });
    lru.Complete(key, Value("x"));
    canceller.join();
    EXPECT_NE(lead.waiter_id, joined.waiter_id);
    EXPECT_GE(calls, 1);
    EXPECT_LE(calls, 2);
  }
}

}  // namespace
}  // namespace kiln
