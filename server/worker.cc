#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "jit/compile/compile_plan.h"
#include "jit/compile/nvrtc_compiler.h"
#include "proto/artifact_converter.h"
#include "proto/file_descriptor.h"
#include "server/child_process.h"
#include "server/ipc_channel.h"
#include "server/process_converter.h"
#include "server/roles.h"
#include "server/worker_sandbox.h"

namespace kiln {
namespace {

using Clock = std::chrono::steady_clock;

// The first compile of a process takes 60 to 280 ms more than the next.
constexpr char kWarmUpSource[] =
    "extern \"C\" __global__ void warm_up(float* x) { x[threadIdx.x] = 1; }";
constexpr char kWarmUpArch[] = "sm_80";

void Limit(int resource, rlim_t value) {
  const rlimit limit{value, value};
  setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

// Hostile sources make NVRTC large, slow or dead; the host must not notice.
// Best effort: the worker is right without any of these.
void ConfineToShare() {
  Limit(RLIMIT_CORE, 0);  // a core file would hold the client's plan
  Limit(RLIMIT_AS, rlim_t{8} << 30);  // the worst benign compile took 0.4 GiB
  Limit(RLIMIT_NOFILE, 64);
  setpriority(PRIO_PROCESS, 0, 5);
  const FileDescriptor score(open("/proc/self/oom_score_adj", O_WRONLY));
  constexpr std::string_view kFirstToGo = "500";
  if (write(score.get(), kFirstToGo.data(), kFirstToGo.size()) < 0) return;
}

// The memory that this process holds now. Opened before the sandbox closes.
// getrusage would do without, but counts from before exec: the front's size.
class ResidentMemory {
 public:
  int64_t Bytes() const {
    std::array<char, 128> text{};
    long pages = 0;
    if (pread(statm_.get(), text.data(), text.size() - 1, 0) <= 0 ||
        std::sscanf(text.data(), "%*d %ld", &pages) != 1) {
      return 0;
    }
    return int64_t{pages} * sysconf(_SC_PAGESIZE);
  }

 private:
  FileDescriptor statm_{open("/proc/self/statm", O_RDONLY | O_CLOEXEC)};
};

// A worker's NVRTC, or why it has none.
struct Compiler {
  absl::Status status;
  std::string toolchain;
  std::unique_ptr<NvrtcCompiler> nvrtc;
};

Compiler LoadCompiler(const std::string& nvrtc_path) {
  Compiler compiler;
  if (nvrtc_path.empty()) {
    compiler.status = absl::FailedPreconditionError(
        "The daemon found no NVRTC at its start.");
    return compiler;
  }
  const auto toolchain = FindToolchain(nvrtc_path, "");
  compiler.status = toolchain.status();
  if (!toolchain.ok()) return compiler;
  compiler.toolchain = toolchain->id;

  auto nvrtc = NvrtcCompiler::Load(*toolchain);
  compiler.status = nvrtc.status();
  if (!nvrtc.ok()) return compiler;
  compiler.nvrtc = *std::move(nvrtc);
  compiler.status =
      compiler.nvrtc->Compile(kWarmUpSource, {}, kWarmUpArch).status();
  return compiler;
}

absl::Status CheckCompiler(const CompileRequest& request,
                           const Compiler& compiler) {
  if (request.target.is_cpu()) return absl::OkStatus();
  if (!compiler.status.ok()) return compiler.status;
  if (request.toolchain == compiler.toolchain) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "NVRTC was replaced while the daemon ran; restart it (the key asks for "
      "{}, the file is {}).",
      request.toolchain, compiler.toolchain));
}

absl::StatusOr<ipc::Compiled> Compile(const ipc::CompileJob& job,
                                      const Compiler& compiler) {
  const auto deadline =
      Clock::now() + std::chrono::milliseconds(job.soft_deadline_ms());
  auto request = FromProto(job);
  if (!request.ok()) return request.status();
  absl::Status usable = CheckCompiler(*request, compiler);
  if (!usable.ok()) return usable;

  if (compiler.nvrtc != nullptr) {
    compiler.nvrtc->set_cancelled(
        [deadline] { return Clock::now() >= deadline; });
  }
  CompilePlanTiming timing;
  auto artifact = CompilePlan(*request, compiler.nvrtc.get(), &timing);
  if (!artifact.ok()) return artifact.status();

  ipc::Compiled compiled;
  compiled.set_artifact(SerializeArtifact(*artifact));
  compiled.set_generate_us(timing.generate_us);
  compiled.set_nvrtc_us(timing.nvrtc_us);
  return compiled;
}

ipc::Reply Answer(const ipc::Request& request, const Compiler& compiler,
                  const ResidentMemory& memory) {
  ipc::Reply reply;
  auto compiled = Compile(request.compile(), compiler);
  if (compiled.ok()) {
    *reply.mutable_compiled() = *std::move(compiled);
  } else {
    *reply.mutable_failure() = ToProto(compiled.status());
  }
  reply.set_id(request.id());
  reply.set_resident_bytes(memory.Bytes());
  return reply;
}

// An artifact over the frame's limit is answered, not dropped.
absl::Status Send(ipc::Reply reply, IpcChannel* channel) {
  absl::Status sent = channel->Send(reply);
  if (!absl::IsResourceExhausted(sent)) return sent;
  *reply.mutable_failure() = ToProto(sent);
  return channel->Send(reply);
}

}  // namespace

int RunCompileWorker(int fd, const std::string& nvrtc_path) {
  IpcChannel channel{FileDescriptor(fd)};
  DieWithParent();
  ConfineToShare();
  const Compiler compiler = LoadCompiler(nvrtc_path);
  const ResidentMemory memory;
  const absl::Status sandboxed = EnterWorkerSandbox();
  if (!sandboxed.ok()) {
    spdlog::warn("A compile worker runs without its sandbox: {}",
                 std::string(sandboxed.message()));
  }
  ipc::Reply ready;
  ready.mutable_ready();
  if (compiler.nvrtc != nullptr) {
    for (const int number : compiler.nvrtc->architectures()) {
      ready.mutable_ready()->add_architectures(number);
    }
  }
  if (!channel.Send(ready).ok()) return 1;
  while (true) {
    ipc::Request request;
    FileDescriptor none;
    const absl::Status received = channel.Receive(&request, &none);
    if (absl::IsUnavailable(received)) return 0;
    if (!received.ok() || !request.has_compile()) return 1;
    if (!Send(Answer(request, compiler, memory), &channel).ok()) return 0;
  }
}

}  // namespace kiln
