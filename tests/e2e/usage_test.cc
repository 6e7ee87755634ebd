#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/e2e/daemon.h"

namespace kiln::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class UsageTest : public testing::Test {
 protected:
  UsageTest() : plan_(Path("plan.kiln")) {
    WriteWhole(plan_, SmallPlanText(1));
  }

  std::string Path(const std::string& name) { return daemon_.folder() / name; }
  // Runs `kiln`, which must end with `status` and an error that has `message`.
  void Refuses(const std::vector<std::string>& arguments,
               const std::string& message, int status = 2) {
    const CommandResult result = daemon_.Kiln(arguments);
    EXPECT_EQ(result.status, status)
        << testing::PrintToString(arguments) << result.out << result.err;
    EXPECT_THAT(result.err, HasSubstr(message));
  }

  Daemon daemon_;
  const std::string plan_;
};

// Prevents a cache that should be emptied from staying as it is.
TEST_F(UsageTest, GcToNothingEvictsEverything) {
  ASSERT_EQ(daemon_.Kiln({"compile", plan_, "--target", "cpu"}).status, 0);
  EXPECT_THAT(daemon_.Kiln({"cache", "gc"}).out, HasSubstr("0 entries"));
  EXPECT_THAT(daemon_.Kiln({"cache", "gc", "--limit", "0"}).out,
              HasSubstr("1 entries evicted"));
  v1::CacheGcRequest negative;
  negative.set_limit_bytes(-1);
  const auto connection = daemon_.OpenConnection();
  EXPECT_TRUE(absl::IsInvalidArgument(
      connection->Call(connection->cache(), &v1::Cache::Stub::Gc, negative)
          .status()));
}

// Prevents numbers from being taken for others that their type can hold.
TEST_F(UsageTest, NumbersOutOfRangeAreRefused) {
  Refuses({"info", "--timeout", "nan"}, "nan is not in range 0.001 to 86400");
  Refuses({"info", "--timeout", "0"}, "0 is not in range 0.001 to 86400");
  Refuses({"info", "--timeout", "soon"}, "soon is not in range");
  Refuses({"run", plan_, "--seed", "18446744073709551616"},
          "is too large (allowed: at most 18446744073709551615)");
  Refuses({"cache", "gc", "--limit", "9223372036854775808"}, "is not a size");
  EXPECT_EQ(
      daemon_.Kiln({"run", plan_, "--seed", "18446744073709551615"}).status, 0);
}

// Prevents advice to give what was given, but misspelt.
TEST_F(UsageTest, MisspeltOptionsAreNamed) {
  Refuses({"compile", plan_, "--targt", "cpu"},
          "There is no such option or argument; did you mean '--target'? (got "
          "--targt)");
  Refuses({"compile", plan_, "--targt=cpu"}, "did you mean '--target'?");
  Refuses({"info", "--sokcet", "s"}, "did you mean '--socket'?");
  Refuses({"compil", plan_}, "did you mean 'compile'? (got compil, commands: ");
  Refuses({"cache", "lst"}, "did you mean 'ls'? (got lst, commands: stats, ls");
  Refuses({"validate", plan_, "b.kiln"}, "or argument (got b.kiln)");
  Refuses({"compile", plan_}, "--target is required");
}

TEST_F(UsageTest, ServeHandsOnWhatFollowsTheDashes) {
  const std::string kilnd_version =
      RunCommand({Program("kilnd"), "--version"}).out;
  const CommandResult version =
      daemon_.Kiln({"serve", "--json", "--", "--version"});
  EXPECT_EQ(version.status, 0) << version.err;
  EXPECT_EQ(version.out, kilnd_version);
  EXPECT_THAT(daemon_.Kiln({"serve", "--version"}).out, HasSubstr("kiln "));
  Refuses({"serve", "--cache-dir", "D"}, "--cache-dir");

  ProcessOptions log;
  log.output = log.errors = Path("served.log");
  const Process served(
      {Program("kiln"), "serve", "--socket", Path("served.sock"), "--",
       "--cache-dir", Path("served-cache"), "--workers", "1"},
      log);
  ConnectOptions options = daemon_.connect_options();
  options.socket = Path("served.sock");
  ASSERT_TRUE(Eventually([&] { return Client::Connect(options).ok(); }));
  const auto info = Client::Connect(options)->GetServerInfo();
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->pid, served.pid());
  EXPECT_EQ(info->cache_dir, Path("served-cache"));
}

// Prevents that a key which is none stands for all of them, that files are not
// found, and that kilnd gets other options than were given to it.
TEST_F(UsageTest, BracketsAreOrdinaryCharacters) {
  Refuses({"serve", "--", "[a]", "[]"}, "not expected: [] [a]");
  WriteWhole(Path("[p,q]"), SmallPlanText(2));
  for (const std::string command : {"compile", "prewarm"}) {
    EXPECT_EQ(daemon_.Kiln({command, Path("[p,q]"), "--target", "cpu"}).status,
              0);
  }
  EXPECT_EQ(daemon_.Stats().entries(), 1);
  Refuses({"cache", "purge", "--yes", "[]"}, "got []");
  EXPECT_EQ(daemon_.Stats().entries(), 1);
  for (const std::string list : {"[cpu,a100]", "[a100]"}) {
    Refuses({"explain", plan_, "--target", list}, "target: names no target");
    Refuses({"explain", plan_, "--target=" + list}, "target: names no target");
  }
  Refuses({"run", plan_, "--input", "[x]"}, "(got [x], allowed: NAME=FILE");
  Refuses({"[x]"}, "got [x], commands");
}

// Prevents an error that says nothing: a message with such a string is not
// sent.
TEST_F(UsageTest, BytesThatNoRequestCarriesAreNamed) {
  const std::string odd = "abcdef\xff";
  const std::string message = "byte 6 is not printable ASCII (got 0xff)";
  for (const std::string command : {"compile", "explain"}) {
    Refuses({command, plan_, "--target", "a100", "--variant", odd},
            "--variant: " + message);
  }
  Refuses({"cache", "show", odd}, "KEY: " + message);
  Refuses({"cache", "purge", odd}, "KEYS: " + message);
}

TEST_F(UsageTest, UnknownVariantsAreNotThePlansFault) {
  for (const std::string command : {"compile", "explain"}) {
    Refuses({command, plan_, "--target", "a100", "--variant", "bogus"},
            "variant: is not a schedule (got bogus");
    Refuses({command, plan_, "--target", "cpu", "--variant", "eager"},
            "variant");
  }
}

TEST_F(UsageTest, QuietPrewarmSaysWhatFails) {
  WriteWhole(Path("bad.kiln"), "nonsense\n");
  Refuses({"-q", "prewarm", Path("bad.kiln"), "--target", "cpu"},
          "failed  " + Path("bad.kiln"), 7);
}

// Prevents advice that cannot work, such as to start what has just exited.
TEST_F(UsageTest, DoctorSaysWhatToDoAboutADaemonThatExits) {
  using nlohmann::json;
  namespace fs = std::filesystem;
  fs::create_directory(Path("open"));
  fs::permissions(Path("open"), fs::perms::all);
  ProcessOptions options;
  options.environment = {{"XDG_STATE_HOME", Path("state")},
                         {"KILN_SOCKET", Path("none.sock")},
                         {"KILN_CACHE_DIR", Path("open")}};
  const CommandResult text = RunCommand({Program("kiln"), "doctor"}, options);
  EXPECT_EQ(text.status, 3) << text.err;
  EXPECT_THAT(text.out, HasSubstr("Put right what the end of its log names"));
  EXPECT_THAT(text.out, Not(HasSubstr("kiln serve")));
  std::istringstream lines(text.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_THAT(line, MatchesRegex("(ok|warn|fail|   ) .*"));
  }
  const json document = json::parse(
      RunCommand({Program("kiln"), "doctor", "--json"}, options).out);
  const std::string finding = document["checks"].back()["finding"];
  EXPECT_THAT(finding, HasSubstr(Path("open")));
  EXPECT_NE(finding.back(), '\n');
  EXPECT_THAT(daemon_.Kiln({"doctor", "--socket", Path("none.sock")}).out,
              HasSubstr("Start one: kiln serve --socket"));
}

// Prevents an empty variable of a script from meaning something else.
TEST_F(UsageTest, FilesAreNamedAndNamedOnce) {
  Refuses({"run", plan_, "--input", "x="}, "(got x=, allowed: NAME=FILE.npy)");
  Refuses({"run", plan_, "--output", "y="}, "(got y=, allowed: NAME=FILE.npy)");
  for (const std::string option : {"--input", "--output"}) {
    Refuses({"run", plan_, option, "x=a.npy", option, "x=b.npy"},
            option + ": a name is given twice (got x,");
  }
  Refuses({"compile", plan_, "--target", "cpu", "-o", ""},
          "--output: nothing is given");
  for (const std::string command : {"compile", "explain", "run", "tune"}) {
    Refuses({command, ""}, "PLAN: nothing is given");
  }
  Refuses({"validate", ""}, "PLAN: nothing is given");
  Refuses({"prewarm", plan_, ""}, "PATHS: nothing is given");
}

// Prevents a verdict of "WRONG" for a right result that overflows.
TEST_F(UsageTest, OverflowIsVerified) {
  for (const std::string plan :
       {"input x: f16[1000]\nz = mul(x, 1e5)\noutput z\n",
        "input x: f16[1000]\ny = mul(x, 40)\nz = exp(y)\noutput z\n",
        "input x: f32[1000]\ny = mul(x, 40)\nz = exp(y)\noutput z\n",
        "input x: f32[1000]\nz = mul(x, 1e38)\noutput z: bf16\n"}) {
    WriteWhole(plan_, plan);
    const CommandResult result = daemon_.Kiln({"run", plan_, "--verify"});
    EXPECT_EQ(result.status, 0) << plan << result.out << result.err;
  }
}

}  // namespace
}  // namespace kiln::e2e
