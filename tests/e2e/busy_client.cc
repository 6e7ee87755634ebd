// A client that shares buffers, compiles, executes and lets go again, for ever,
// to be killed at any point.
//
//   busy_client SOCKET FIRST_NUMBER
#include <cstdio>
#include <cstdlib>

#include "client/kiln.h"
#include "tests/e2e/small_plan.h"

namespace kiln::e2e {
namespace {

absl::Status OneRound(Client& client, int number) {
  const absl::StatusOr<CompiledPlan> compiled =
      client.Compile(SmallPlan(number, 1 << 16));
  if (!compiled.ok()) return compiled.status();
  absl::StatusOr<Session> session = client.OpenSession();
  if (!session.ok()) return session.status();
  for (int i = 0; i < 4; ++i) {
    const auto input = session->CreateBuffer(4 << 16);
    if (!input.ok()) return input.status();
    const auto output = session->CreateBuffer(4 << 16);
    if (!output.ok()) return output.status();
    const auto executed = session->Execute(
        *compiled, Bindings().Input(0, *input).Output(0, *output));
    if (!executed.ok()) return executed.status();
  }
  return absl::OkStatus();
}

int Main(const char* socket, int number) {
  ConnectOptions options;
  options.socket = socket;
  options.auto_start = false;
  while (true) {
    absl::StatusOr<Client> client = Client::Connect(options);
    if (!client.ok()) continue;
    std::puts("round");
    std::fflush(stdout);
    (void)OneRound(*client, number++);
  }
}

}  // namespace
}  // namespace kiln::e2e

int main(int argc, char** argv) {
  return argc == 3 ? kiln::e2e::Main(argv[1], std::atoi(argv[2])) : 2;
}
