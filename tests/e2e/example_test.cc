#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/daemon.h"

namespace kiln::e2e {
namespace {

TEST(ExampleTest, ReadmesExampleRuns) {
  const Daemon daemon;
  const CommandResult result =
      RunCommand({Program("client_example"), daemon.folder() / "kilnd.sock"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, testing::HasSubstr("y[0,0,4,4] = 14 "));
}

// Prevents a README whose example is not the one that compiles.
TEST(ExampleTest, ReadmeShowsThisExample) {
  const std::filesystem::path root = KILN_SOURCE_DIR;
  const std::string example =
      ReadWhole(root / "examples" / "client" / "example.cc");
  ASSERT_FALSE(example.empty());
  EXPECT_THAT(ReadWhole(root / "README.md"),
              testing::HasSubstr("```c++\n" + example + "```\n"));
}

}  // namespace
}  // namespace kiln::e2e
