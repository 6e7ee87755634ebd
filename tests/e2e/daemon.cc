#include "tests/e2e/daemon.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "client/unix_socket.h"

namespace kiln::e2e {
namespace {

std::map<std::string, std::string> EnvironmentIn(const TempDir& folder) {
  const std::string path = folder.path();
  return {{"XDG_RUNTIME_DIR", path},
          {"XDG_CACHE_HOME", path + "/cache-home"},
          {"XDG_STATE_HOME", path + "/state"},
          {"KILN_SOCKET", path + "/kilnd.sock"},
          {"KILN_CACHE_DIR", path + "/cache"}};
}

// A machine under load starts a process slowly.
constexpr std::chrono::seconds kStartTimeout{60};

}  // namespace

Daemon::Daemon(std::vector<std::string> arguments, int descriptor_limit)
    : arguments_(std::move(arguments)),
      descriptor_limit_(descriptor_limit),
      process_({"/bin/true"}, {}) {
  process_.Wait();
  Start();
}

Daemon::~Daemon() {
  if (!testing::Test::HasFailure()) return;
  const std::string text = log();
  const size_t from = text.size() > 6000 ? text.size() - 6000 : 0;
  std::fprintf(stderr, "--- end of kilnd's log\n%s---\n",
               text.substr(from).c_str());
}

void Daemon::Start() {
  std::vector<std::string> arguments = {Program("kilnd"), "--socket",
                                        folder_ / "kilnd.sock", "--cache-dir",
                                        folder_ / "cache"};
  arguments.insert(arguments.end(), arguments_.begin(), arguments_.end());
  ProcessOptions options;
  options.environment = EnvironmentIn(folder_);
  options.output = folder_ / "log";
  options.errors = folder_ / "log";
  options.descriptor_limit = descriptor_limit_;
  process_ = Process(arguments, options);
  const bool up = Eventually(
      [this] {
        return client::ConnectUnix(folder_ / "kilnd.sock", kStartTimeout).ok();
      },
      kStartTimeout);
  ASSERT_TRUE(up) << "kilnd does not start";
}

ConnectOptions Daemon::connect_options() const {
  ConnectOptions options;
  options.socket = folder_ / "kilnd.sock";
  options.auto_start = false;
  options.start_timeout = kStartTimeout;
  return options;
}

Client Daemon::Connect() const {
  absl::StatusOr<Client> client = Client::Connect(connect_options());
  if (!client.ok()) {
    ADD_FAILURE() << client.status().ToString();
    std::abort();
  }
  return *client;
}

std::shared_ptr<client::Connection> Daemon::OpenConnection() const {
  auto connection = client::Connection::Open(connect_options());
  if (!connection.ok()) {
    ADD_FAILURE() << connection.status().ToString();
    std::abort();
  }
  return *connection;
}

v1::CacheStatsResponse Daemon::Stats() const {
  const auto connection = OpenConnection();
  const auto stats = connection->Call(
      connection->cache(), &v1::Cache::Stub::Stats, v1::CacheStatsRequest());
  EXPECT_TRUE(stats.ok()) << stats.status().ToString();
  return stats.ok() ? *stats : v1::CacheStatsResponse();
}

CommandResult Daemon::Kiln(std::vector<std::string> arguments,
                           const std::string& input) const {
  arguments.insert(arguments.begin(), {Program("kiln"), "--no-start"});
  ProcessOptions options;
  options.environment = EnvironmentIn(folder_);
  options.input = input;
  return RunCommand(arguments, options);
}

FileDescriptor ListenInSilence(const std::string& path, int backlog) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                 sizeof(address)),
            0);
  EXPECT_EQ(listen(fd.get(), backlog), 0);
  return fd;
}

bool Eventually(const std::function<bool()>& condition,
                std::chrono::milliseconds timeout) {
  const auto give_up = std::chrono::steady_clock::now() + timeout;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace kiln::e2e
