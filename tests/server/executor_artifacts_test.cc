#include "server/executor_artifacts.h"

#include <gtest/gtest.h>

#include <string>

namespace kiln {
namespace {

Artifact Named(const std::string& key) {
  Artifact artifact;
  artifact.key = key;
  return artifact;
}

TEST(ExecutorArtifactsTest, DropsTheLeastRecentlyUsedFirst) {
  ExecutorArtifacts artifacts(30);
  artifacts.Put("a", Named("a"), 10);
  artifacts.Put("b", Named("b"), 10);
  artifacts.Put("c", Named("c"), 10);
  ASSERT_NE(artifacts.Get("a"), nullptr);
  artifacts.Put("d", Named("d"), 10);
  EXPECT_EQ(artifacts.Get("b"), nullptr);
  for (const char* key : {"a", "c", "d"}) {
    ASSERT_NE(artifacts.Get(key), nullptr);
    EXPECT_EQ(artifacts.Get(key)->key, key);
  }
}

TEST(ExecutorArtifactsTest, HoldsTheNewestHoweverLarge) {
  ExecutorArtifacts artifacts(30);
  artifacts.Put("a", Named("a"), 10);
  artifacts.Put("b", Named("b"), 1000);
  EXPECT_EQ(artifacts.Get("a"), nullptr);
  EXPECT_NE(artifacts.Get("b"), nullptr);
  artifacts.Put("c", Named("c"), 10);
  EXPECT_EQ(artifacts.Get("b"), nullptr);
  EXPECT_NE(artifacts.Get("c"), nullptr);
}

TEST(ExecutorArtifactsTest, CountsWhatIsReplacedOnce) {
  ExecutorArtifacts artifacts(30);
  artifacts.Put("a", Named("a"), 10);
  for (int i = 0; i < 10; ++i) artifacts.Put("b", Named("b"), 20);
  EXPECT_NE(artifacts.Get("a"), nullptr);
}

}  // namespace
}  // namespace kiln
