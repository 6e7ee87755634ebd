#include "cache/lru_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace kiln {
namespace {

constexpr int64_t kHourMs = 3'600'000;

// The same by brute force: a number of last use per key.
struct Model {
  struct Use {
    int64_t size_bytes;
    int64_t order;
  };
  std::map<std::string, Use> uses;
  int64_t clock = 0;

  int64_t size_bytes() const {
    int64_t sum = 0;
    for (const auto& use : uses) sum += use.second.size_bytes;
    return sum;
  }

  std::vector<std::string> Victims(int64_t target_bytes) const {
    std::vector<std::pair<int64_t, std::string>> by_use;
    for (const auto& use : uses) {
      by_use.emplace_back(use.second.order, use.first);
    }
    std::sort(by_use.begin(), by_use.end());
    std::vector<std::string> victims;
    int64_t left = size_bytes();
    for (const auto& use : by_use) {
      if (left <= target_bytes) break;
      victims.push_back(use.second);
      left -= uses.at(use.second).size_bytes;
    }
    return victims;
  }
};

// Prevents evicting what is in use while idle entries stay.
TEST(LruIndexTest, AgreesWithTheModelOver200000Operations) {
  constexpr int64_t kLimit = 4000;
  LruIndex index;
  Model model;
  std::mt19937_64 random(7);
  for (int step = 0; step < 200'000; ++step) {
    const std::string key = std::to_string(random() % 200);
    const int64_t size = static_cast<int64_t>(random() % 100);
    switch (random() % 4) {
      case 0:
        index.Insert({key, size, step, step});
        model.uses[key] = {size, ++model.clock};
        break;
      case 1:
        index.Erase(key);
        model.uses.erase(key);
        break;
      default:
        index.Touch(key, step);
        if (model.uses.count(key)) model.uses[key].order = ++model.clock;
        break;
    }
    if (index.size_bytes() > kLimit) {
      const std::vector<std::string> victims = index.Victims(kLimit * 9 / 10);
      ASSERT_EQ(victims, model.Victims(kLimit * 9 / 10)) << "step " << step;
      for (const std::string& victim : victims) {
        index.Erase(victim);
        model.uses.erase(victim);
      }
    }
    ASSERT_LE(index.size_bytes(), kLimit);
    ASSERT_EQ(index.entries(), static_cast<int64_t>(model.uses.size()));
    if (step % 64 == 0) {
      ASSERT_EQ(index.size_bytes(), model.size_bytes());
      ASSERT_EQ(index.Victims(-1), model.Victims(-1));
    }
  }
}

TEST(LruIndexTest, RebuildsInOrderOfUse) {
  LruIndex index;
  index.Rebuild({{"new", 1, 30, 30}, {"old", 1, 10, 10}, {"mid", 1, 20, 20}});
  EXPECT_EQ(index.Victims(-1), (std::vector<std::string>{"old", "mid", "new"}));
  EXPECT_EQ(index.MostRecentFirst().front().key, "new");
}

TEST(LruIndexTest, SavesUseAtMostHourly) {
  LruIndex index;
  index.Insert({"a", 1, 0, 0});
  EXPECT_FALSE(index.Touch("a", kHourMs - 1));
  EXPECT_TRUE(index.Touch("a", kHourMs));
  EXPECT_FALSE(index.Touch("a", kHourMs + 1));
  EXPECT_TRUE(index.Touch("a", 2 * kHourMs));
  EXPECT_FALSE(index.Touch("unknown", 9 * kHourMs));
}

}  // namespace
}  // namespace kiln
