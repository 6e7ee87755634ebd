// What a cache hit costs, beside an empty call to the same daemon.
//
//   kiln_rpc_latency KILND [CALLS]
//
// Starts a private daemon, fills its cache with 200 small kernels, and measures
// CALLS (default 4,000) of each, interleaved with as many empty calls
// (grpc.health.v1.Health.Check) on a second connection:
//   memory    Compile of a plan whose artifact is in memory
//   artifact  the same, answered with its artifact (cubins and launch record)
//   disk      Compile of a plan after a restart of the daemon, which finds it
//             on disk
// Prints one line of JSON: medians in microseconds, and ratios to the empty
// call's median of the same run.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/connection.h"
#include "client/plan_builder.h"
#include "health.grpc.pb.h"
#include "proto/file_descriptor.h"
#include "proto/plan_converter.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Samples = std::vector<double>;  // microseconds

// Enough that a hit of one says nothing about the next, few enough that a
// cold fill takes seconds.
constexpr int kPlans = 200;
constexpr int kWarmUp = 200;
constexpr int kStopTimeoutMs = 60'000;

[[noreturn]] void Die(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

v1::CompileRequest RequestOf(int number, bool include_artifact) {
  PlanBuilder builder;
  const ValueId x = builder.Input("x", DataType::kF32, {64});
  builder.Output(builder.Mul(x, static_cast<float>(number) + 0.5f));
  v1::CompileRequest request;
  *request.mutable_plan() = ToProto(*builder.Build());
  request.set_target("sm_80/108");
  request.set_include_artifact(include_artifact);
  return request;
}

// A private daemon that can be stopped and started again.
class Bench {
 public:
  Bench(const std::string& kilnd, const fs::path& folder) {
    options_.socket = folder / "kilnd.sock";
    options_.kilnd = kilnd;
    options_.log_file = folder / "kilnd.log";
    options_.kilnd_args = {"--cache-dir", folder / "cache", "--log-level",
                           "warn"};
    Start();
  }
  ~Bench() { Stop(); }

  void Start() {
    auto connection = client::Connection::Open(options_);
    if (!connection.ok()) Die(connection.status());
    connection_ = *std::move(connection);
    // A stub on a channel of its own, to the same daemon.
    health_ = grpc::health::v1::Health::NewStub(grpc::CreateChannel(
        "unix:" + options_.socket, grpc::InsecureChannelCredentials()));
    for (int i = 0; i < kWarmUp; ++i) Empty();
  }

  void Stop() {
    const auto pid = static_cast<pid_t>(connection_->greeting().pid());
    const FileDescriptor process(
        static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    kill(pid, SIGTERM);
    pollfd exited = {process.get(), POLLIN, 0};
    poll(&exited, 1, kStopTimeoutMs);
  }

  double Empty() const {
    grpc::health::v1::HealthCheckRequest request;
    grpc::health::v1::HealthCheckResponse response;
    return Time([&] {
      grpc::ClientContext context;
      connection_->Prepare(context);
      const grpc::Status status = health_->Check(&context, request, &response);
      if (!status.ok()) Die(absl::UnknownError(status.error_message()));
    });
  }

  // The time of a call, which must be answered from `source`.
  double Compile(const v1::CompileRequest& request, v1::Source source) const {
    return Time([&] {
      const auto response = connection_->Call(
          connection_->compiler(), &v1::Compiler::Stub::Compile, request);
      if (!response.ok()) Die(response.status());
      if (response->source() != source) {
        Die(absl::InternalError(fmt::format(
            "The answer comes from {} instead of {}",
            v1::Source_Name(response->source()), v1::Source_Name(source))));
      }
    });
  }

 private:
  static double Time(const std::function<void()>& call) {
    const Clock::time_point start = Clock::now();
    call();
    return std::chrono::duration<double, std::micro>(Clock::now() - start)
        .count();
  }

  ConnectOptions options_;
  std::shared_ptr<client::Connection> connection_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

double Median(Samples samples) {
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2,
                   samples.end());
  return samples[samples.size() / 2];
}

nlohmann::json Ratio(const Samples& samples, const Samples& empty) {
  return {{"median_us", Median(samples)},
          {"empty_us", Median(empty)},
          {"ratio", Median(samples) / Median(empty)},
          {"calls", samples.size()}};
}

nlohmann::json MeasureMemory(const Bench& bench, int calls) {
  Samples empty, memory, artifact;
  for (int i = 0; i < calls; ++i) {
    empty.push_back(bench.Empty());
    memory.push_back(bench.Compile(RequestOf(i % kPlans, false), v1::MEMORY));
    artifact.push_back(bench.Compile(RequestOf(i % kPlans, true), v1::MEMORY));
  }
  return {{"memory", Ratio(memory, empty)},
          {"artifact", Ratio(artifact, empty)}};
}

nlohmann::json MeasureDisk(Bench& bench, int calls) {
  Samples empty, disk;
  while (static_cast<int>(disk.size()) < calls) {
    bench.Stop();
    bench.Start();
    for (int i = 0; i < kPlans; ++i) {
      empty.push_back(bench.Empty());
      disk.push_back(bench.Compile(RequestOf(i, false), v1::DISK));
    }
  }
  return Ratio(disk, empty);
}

int Main(const char* kilnd, int calls) {
  std::string name = (fs::temp_directory_path() / "kiln-bench-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) return 1;
  {
    Bench bench(kilnd, name);
    for (int i = 0; i < kPlans; ++i) {
      bench.Compile(RequestOf(i, false), v1::COMPILED);
    }
    nlohmann::json result = MeasureMemory(bench, calls);
    result["disk"] = MeasureDisk(bench, calls);
    std::puts(result.dump().c_str());
  }
  fs::remove_all(name);
  return 0;
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fmt::print(stderr, "usage: kiln_rpc_latency KILND [CALLS]\n");
    return 2;
  }
  return kiln::Main(argv[1], argc == 3 ? std::atoi(argv[2]) : 4000);
}
