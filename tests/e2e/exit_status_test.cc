#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "kiln/v1/service.grpc.pb.h"
#include "tests/e2e/daemon.h"

namespace kiln::e2e {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;

// A daemon of a later protocol.
class LaterDaemon : public v1::Compiler::Service {
 public:
  explicit LaterDaemon(const std::string& socket) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket,
                             grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  grpc::Status GetServerInfo(grpc::ServerContext*,
                             const v1::GetServerInfoRequest*,
                             v1::GetServerInfoResponse* response) override {
    response->set_version("99.0.0");
    response->set_protocol(99);
    response->set_pid(4711);
    return grpc::Status::OK;
  }

 private:
  std::unique_ptr<grpc::Server> server_;
};

TEST(ExitStatusTest, OtherProtocolIsIncompatible) {
  const TempDir dir;
  const std::string socket = dir / "kilnd.sock";
  const LaterDaemon daemon(socket);
  const CommandResult result =
      RunCommand({Program("kiln"), "info", "--no-start", "--socket", socket});
  EXPECT_EQ(result.status, 9) << result.err;
  EXPECT_THAT(result.err, HasSubstr("speaks protocol 99, this client 1"));
  EXPECT_THAT(result.err, HasSubstr("hint: Stop it (kill 4711)"));
}

TEST(ExitStatusTest, DeadlineThatPassesIsSix) {
  const Daemon daemon;
  WriteWhole(daemon.folder() / "plan.kiln", SmallPlanText(1));
  const CommandResult result =
      daemon.Kiln({"compile", daemon.folder() / "plan.kiln", "--target", "a100",
                   "--timeout", "0.001"});
  EXPECT_EQ(result.status, 6) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("does not answer the CompileRequest before the call's "
                        "deadline (1 ms)"));
}

TEST(ExitStatusTest, UnreadableFileIsNotPermitted) {
  const TempDir dir;
  WriteWhole(dir / "plan.kiln", SmallPlanText(1));
  chmod((dir / "plan.kiln").c_str(), 0);
  ProcessOptions options;
  options.heeds_file_modes = true;
  EXPECT_EQ(
      RunCommand({Program("kiln"), "validate", dir / "plan.kiln"}, options)
          .status,
      4);
}

// `kiln info` on `socket`, which may start a daemon with its log in `state`.
CommandResult Info(const std::string& socket, const std::string& state,
                   bool heeds_file_modes = false) {
  ProcessOptions options;
  options.environment = {{"XDG_STATE_HOME", state}};
  options.heeds_file_modes = heeds_file_modes;
  return RunCommand({Program("kiln"), "info", "--socket", socket}, options);
}

void ExpectRefusal(const CommandResult& result, const std::string& reason,
                   const std::string& hint) {
  EXPECT_EQ(result.status, 4) << result.err;
  EXPECT_THAT(result.err, HasSubstr("cannot be used by "));
  EXPECT_THAT(result.err, HasSubstr(reason));
  EXPECT_THAT(result.err, HasSubstr("hint: " + hint));
}

// Prevents a daemon that is started only to fail.
TEST(ExitStatusTest, AnotherUsersFolderIsNotPermitted) {
  const TempDir dir;
  const TempDir state;
  const bool is_root = geteuid() == 0;
  if (is_root) {
    ASSERT_EQ(chown(dir.path().c_str(), kNobody, -1), 0);
  }
  const std::string folder = is_root ? dir.path().string() : "/usr";
  ExpectRefusal(
      Info(folder + "/kilnd.sock", state / "kiln"),
      "its folder " + folder + " (mode " + (is_root ? "0700" : "0755"),
      "Each user has a daemon of their own");
  EXPECT_TRUE(std::filesystem::is_empty(state.path()));
}

TEST(ExitStatusTest, AFolderThatRefusesIsNamedWithItsMode) {
  const TempDir dir;
  const TempDir state;
  const std::string folder = dir / "closed";
  std::filesystem::create_directory(folder);
  chmod(folder.c_str(), 0);
  ExpectRefusal(Info(folder + "/deeper/kilnd.sock", state / "kiln", true),
                folder + " (mode 0000) belongs to ", "Change its mode");
  EXPECT_TRUE(std::filesystem::is_empty(state.path()));
}

// Prevents that root, whom every socket lets in, is told of limits of
// connections.
TEST(ExitStatusTest, AnotherUsersDaemonIsNotPermitted) {
  if (geteuid() != 0) GTEST_SKIP() << "Only root can be another user.";
  const TempDir dir;
  const std::string socket = dir / "kilnd.sock";
  ASSERT_EQ(chown(dir.path().c_str(), kNobody, -1), 0);
  ASSERT_EQ(seteuid(kNobody), 0);
  const FileDescriptor listener = ListenInSilence(socket, 8);
  ASSERT_EQ(seteuid(0), 0);
  ExpectRefusal(Info(socket, dir / "state"), "its daemon belongs to nobody",
                "Each user has a daemon of their own");
}

// Prevents a prewarm of hours that tells nothing of what it did.
TEST(ExitStatusTest, InterruptedPrewarmReportsAndResumes) {
  constexpr int kPlans = 400;
  const Daemon daemon;
  std::string manifest;
  for (int i = 0; i < kPlans; ++i) {
    const nlohmann::json line = {{"plan", SmallPlanText(i)},
                                 {"targets", {"a100"}}};
    manifest += line.dump() + "\n";
  }
  const std::string path = daemon.folder() / "fleet.jsonl";
  WriteWhole(path, manifest);
  ProcessOptions options;
  options.output = daemon.folder() / "out";
  options.errors = daemon.folder() / "err";
  Process prewarm({Program("kiln"), "--socket", daemon.folder() / "kilnd.sock",
                   "prewarm", path, "--resume", "--json"},
                  options);
  ASSERT_TRUE(Eventually([&] { return !ReadWhole(path + ".done").empty(); }));
  prewarm.Signal(SIGINT);
  EXPECT_EQ(prewarm.Wait(), 130) << ReadWhole(options.errors);
  const auto report = nlohmann::json::parse(ReadWhole(options.output));
  EXPECT_GT(report["compiled"], 0);
  EXPECT_LT(report["compiled"], kPlans);

  const CommandResult second =
      daemon.Kiln({"prewarm", path, "--resume", "--json"});
  EXPECT_EQ(second.status, 0) << second.err;
  const auto rest = nlohmann::json::parse(second.out);
  EXPECT_EQ(rest["skipped"], report["compiled"]);
  EXPECT_EQ(rest["failed"], 0);
}

}  // namespace
}  // namespace kiln::e2e
