#include "server/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/units.h"

namespace kiln {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

Environment Bare() {
  Environment environment;
  environment.uid = 1000;
  environment.home = "/h";
  environment.executable = "/opt/kiln/bin/kilnd";
  environment.cores = 4;
  return environment;
}

Options Parse(const std::vector<std::string>& arguments,
              const Environment& environment = Bare()) {
  const CommandLine line = ParseCommandLine(arguments, environment);
  EXPECT_TRUE(line.options) << line.output;
  return line.options.value_or(Options{});
}

TEST(OptionsTest, DefaultsFollowTheEnvironment) {
  Environment environment = Bare();
  EXPECT_EQ(Parse({}, environment).socket_path, "/tmp/kiln-1000/kilnd.sock");
  EXPECT_EQ(Parse({}, environment).cache_dir, "/h/.cache/kiln");
  environment.xdg_runtime_dir = "/run/user/1000";
  environment.xdg_cache_home = "/c";
  EXPECT_EQ(Parse({}, environment).socket_path,
            "/run/user/1000/kiln/kilnd.sock");
  EXPECT_EQ(Parse({}, environment).cache_dir, "/c/kiln");
  environment.kiln_socket = "/s";
  environment.kiln_cache_dir = "/d";
  EXPECT_EQ(Parse({}, environment).socket_path, "/s");
  EXPECT_EQ(Parse({}, environment).cache_dir, "/d");
  EXPECT_EQ(Parse({"--socket", "/x"}, environment).socket_path, "/x");
}

TEST(OptionsTest, LooksForNvrtcInCudaAndBesideTheProgram) {
  Environment environment = Bare();
  environment.cuda_path = "/cuda";
  EXPECT_THAT(Parse({}, environment).nvrtc_extra_dirs,
              ::testing::ElementsAre("/cuda/lib64", "/opt/kiln/nvrtc"));
}

TEST(OptionsTest, ReadsEveryOption) {
  const Options options =
      Parse({"--socket",      "/s",    "--cache-dir",       "/d",
             "--cache-limit", "2GiB",  "--workers",         "3",
             "--nvrtc",       "/n",    "--idle-exit",       "10m",
             "--log-level",   "debug", "--log-format",      "json",
             "--log-file",    "/l",    "--max-connections", "80",
             "--record",      "/r",    "--drain",           "500ms"});
  EXPECT_EQ(options.cache_limit_bytes, int64_t{2} << 30);
  EXPECT_EQ(options.workers, 3);
  EXPECT_EQ(options.nvrtc_path, "/n");
  EXPECT_EQ(options.idle_exit, milliseconds(600'000));
  EXPECT_EQ(options.log_level, "debug");
  EXPECT_EQ(options.log_format, LogFormat::kJson);
  EXPECT_EQ(options.log_file, "/l");
  EXPECT_EQ(options.max_connections, 80);
  EXPECT_EQ(options.record_path, "/r");
  EXPECT_EQ(options.drain, milliseconds(500));
}

TEST(OptionsTest, ReadsRoles) {
  EXPECT_EQ(Parse({}).role, Role::kFront);
  const Options worker =
      Parse({"--role", "worker", "--fd", "5", "--nvrtc", "/n"});
  EXPECT_EQ(worker.role, Role::kWorker);
  EXPECT_EQ(worker.role_fd, 5);
  const Options executor =
      Parse({"--role", "executor", "--fd", "5", "--device", "cpu"});
  EXPECT_EQ(executor.role, Role::kExecutor);
  EXPECT_EQ(executor.device, "cpu");
}

TEST(OptionsTest, WorkersLeaveACoreToTheFront) {
  Environment environment = Bare();
  for (const auto& [cores, workers] : std::vector<std::pair<int, int>>{
           {0, 1}, {1, 1}, {2, 1}, {4, 3}, {9, 8}, {64, 8}}) {
    environment.cores = cores;
    EXPECT_EQ(Parse({}, environment).workers, workers);
  }
}

TEST(OptionsTest, RefusesNonsenseWithStatusTwo) {
  const std::vector<std::vector<std::string>> bad = {{"--unknown"},
                                                     {"stray"},
                                                     {"--cache-limit", "10XB"},
                                                     {"--idle-exit", "10"},
                                                     {"--workers", "0"},
                                                     {"--max-connections", "0"},
                                                     {"--log-level", "loud"},
                                                     {"--log-format", "xml"},
                                                     {"--role", "king"},
                                                     {"--drain"}};
  for (const auto& arguments : bad) {
    const CommandLine line = ParseCommandLine(arguments, Bare());
    EXPECT_FALSE(line.options) << arguments[0];
    EXPECT_EQ(line.exit_status, 2) << arguments[0];
    EXPECT_THAT(line.output, HasSubstr("kilnd: "));
  }
}

// Prevents a hunt for which of the options is meant.
TEST(OptionsTest, NamesTheOptionOfAValueThatIsWrong) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> bad = {
      {{"--idle-exit", "soon"}, "--idle-exit: \"soon\" is not a duration"},
      {{"--drain", "10"}, "--drain: \"10\" is not a duration"},
      {{"--cache-limit", "5XB"}, "--cache-limit: \"5XB\" is not a size"},
      {{"--workers", "0"}, "--workers: Value 0 not in range 1 to 256"},
      {{"--socket", ""}, "--socket: nothing is given"},
      {{"--cache-dir", ""}, "--cache-dir: nothing is given"}};
  for (const auto& [arguments, message] : bad) {
    EXPECT_THAT(ParseCommandLine(arguments, Bare()).output, HasSubstr(message));
  }
}

TEST(OptionsTest, HelpHasExamplesAndHidesRoles) {
  const CommandLine help = ParseCommandLine({"--help"}, Bare());
  EXPECT_EQ(help.exit_status, 0);
  EXPECT_THAT(help.output, HasSubstr("Examples:"));
  EXPECT_THAT(help.output, HasSubstr("--max-connections"));
  EXPECT_EQ(help.output.find("--role"), std::string::npos);
  const CommandLine version = ParseCommandLine({"--version"}, Bare());
  EXPECT_EQ(version.exit_status, 0);
  EXPECT_THAT(version.output, HasSubstr("kilnd "));
}

TEST(UnitsTest, ReadsSizes) {
  EXPECT_EQ(*ParseSize("0"), 0);
  EXPECT_EQ(*ParseSize("4096"), 4096);
  EXPECT_EQ(*ParseSize("64 KiB"), 65536);
  EXPECT_EQ(*ParseSize("10GiB"), int64_t{10} << 30);
  EXPECT_EQ(*ParseSize("8388607TiB"), int64_t{8388607} << 40);
  for (const char* bad : {"", "GiB", "-1", "1GB", "1gib", "1.5GiB", "1 2",
                          "8388608TiB", "9223372036854775808"}) {
    EXPECT_FALSE(ParseSize(bad).ok()) << bad;
  }
}

TEST(UnitsTest, ReadsDurations) {
  EXPECT_EQ(*ParseDuration("250ms"), milliseconds(250));
  EXPECT_EQ(*ParseDuration("30s"), milliseconds(30'000));
  EXPECT_EQ(*ParseDuration("10m"), milliseconds(600'000));
  EXPECT_EQ(*ParseDuration("2h"), milliseconds(7'200'000));
  for (const char* bad : {"", "30", "s", "-1s", "1d", "1.5s", "99999999h"}) {
    EXPECT_FALSE(ParseDuration(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace kiln
