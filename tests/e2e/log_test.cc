#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/e2e/daemon.h"

namespace kiln::e2e {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr char kCompiled[] =
    "Compiled key=[0-9a-f]+ target=sm_80/108 kernels=[0-9]+ nvrtc_ms=[0-9.]+ "
    "total_ms=[0-9.]+ source=";

std::vector<std::string> LinesWith(const std::string& log,
                                   const std::string& word) {
  std::vector<std::string> lines;
  std::istringstream stream(log);
  for (std::string line; std::getline(stream, line);) {
    if (line.find(word) != std::string::npos) lines.push_back(line);
  }
  return lines;
}

// Prevents a hunt for the reason.
TEST(LogTest, FilesThatCannotBeOpenedSayWhy) {
  const TempDir dir;
  const std::vector<std::pair<std::string, std::string>> files = {
      {"--log-file", "log file"}, {"--record", "manifest"}};
  for (const auto& [option, what] : files) {
    const CommandResult result =
        RunCommand({Program("kilnd"), "--socket", dir / "s", "--cache-dir",
                    dir / "cache", option, dir.path()});
    EXPECT_EQ(result.status, 1) << result.err;
    EXPECT_THAT(result.err,
                HasSubstr("The " + what + " " + dir.path().string() +
                          " cannot be opened: Is a directory"));
  }
}

void CompileTwiceAndPrewarm(const Daemon& daemon) {
  for (int i = 1; i <= 2; ++i) {
    WriteWhole(daemon.folder() / (std::to_string(i) + ".kiln"),
               SmallPlanText(i));
  }
  const std::string first = daemon.folder() / "1.kiln";
  const std::string second = daemon.folder() / "2.kiln";
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(daemon.Kiln({"compile", first, "--target", "a100"}).status, 0);
  }
  ASSERT_EQ(daemon.Kiln({"prewarm", second, "--target", "a100"}).status, 0);
}

// Prevents a fleet whose operators cannot tell what was compiled when and why.
TEST(LogTest, EachColdCompileIsALineOfText) {
  const Daemon daemon;
  CompileTwiceAndPrewarm(daemon);
  const auto lines = LinesWith(daemon.log(), "Compiled ");
  ASSERT_EQ(lines.size(), 2u) << daemon.log();
  const std::string start = " info request=[0-9a-f]+ " + std::string(kCompiled);
  EXPECT_THAT(lines[0], ContainsRegex(start + "client$"));
  EXPECT_THAT(lines[1], ContainsRegex(start + "prewarm$"));
}

TEST(LogTest, EachColdCompileIsAnObjectOfJson) {
  const Daemon daemon({"--log-format", "json"});
  CompileTwiceAndPrewarm(daemon);
  const auto lines = LinesWith(daemon.log(), "Compiled ");
  ASSERT_EQ(lines.size(), 2u) << daemon.log();
  const auto line = nlohmann::json::parse(lines[1], nullptr, false);
  ASSERT_TRUE(line.is_object()) << lines[1];
  EXPECT_EQ(line["level"], "info");
  EXPECT_THAT(line["request"].get<std::string>(), MatchesRegex("[0-9a-f]+"));
  EXPECT_THAT(line["message"].get<std::string>(),
              MatchesRegex(kCompiled + std::string("prewarm")));
}

}  // namespace
}  // namespace kiln::e2e
