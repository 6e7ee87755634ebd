#include "server/worker_sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace kiln {
namespace {

// Runs `act` in a sandboxed process: its exit status, or minus its signal.
int InSandbox(const std::function<int()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    if (!EnterWorkerSandbox().ok()) _exit(100);
    _exit(act());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

struct Forbidden {
  std::string name;
  std::function<int64_t()> call;  // negative and errno on failure
};

// Prevents that a compiler gone wrong reads, writes, calls or starts anything.
TEST(WorkerSandboxTest, DeniesEveryWayOut) {
  const std::vector<Forbidden> all = {
      {"read", [] { return open("/etc/passwd", O_RDONLY); }},
      {"create", [] { return creat("/tmp/kiln_sandbox_test", 0600); }},
      {"unlink", [] { return unlink("/tmp/kiln_sandbox_test"); }},
      {"socket", [] { return socket(AF_UNIX, SOCK_STREAM, 0); }},
      {"exec", [] { return execl("/bin/true", "true", nullptr); }},
      {"fork", [] { return fork(); }},
      {"kill", [] { return kill(getppid(), 0); }},
      {"signal a thread", [] { return tgkill(getppid(), getppid(), 0); }},
  };
  for (const Forbidden& forbidden : all) {
    const int got = InSandbox([&] {
      errno = 0;
      return forbidden.call() < 0 ? errno : 0;
    });
    EXPECT_EQ(got, EPERM) << forbidden.name;
  }
}

TEST(WorkerSandboxTest, AllowsMemoryThreadsAndWhatIsOpen) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int got = InSandbox([&] {
    std::vector<char> memory(64 << 20, 'x');
    std::thread([&] { memory[0] = 'y'; }).join();
    return write(ends[1], memory.data(), 1) == 1 ? 0 : 1;
  });
  char byte = 0;
  EXPECT_EQ(got, 0);
  EXPECT_EQ(read(ends[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  close(ends[0]);
  close(ends[1]);
}

// A worker that aborts must still be seen to.
TEST(WorkerSandboxTest, LetsAProcessAbort) {
  EXPECT_EQ(InSandbox([]() -> int { abort(); }), -SIGABRT);
}

}  // namespace
}  // namespace kiln
