#include "server/daemon.h"

#include <fmt/ranges.h>
#include <grpc/grpc.h>
#include <grpcpp/health_check_service_interface.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/cache_key.h"
#include "server/grpc_connection.h"
#include "server/side_socket.h"
#include "server/version.h"
#include "server/warm_up.h"

namespace kiln {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kIdlePoll{250};
constexpr milliseconds kDrainPoll{20};
// What a client that was just told UNAVAILABLE gets for reading it.
constexpr milliseconds kFarewell{100};

// Whether a signal came within `timeout`.
bool SignalWithin(int signal_fd, milliseconds timeout) {
  pollfd wait = {signal_fd, POLLIN, 0};
  if (poll(&wait, 1, static_cast<int>(timeout.count())) <= 0) return false;
  signalfd_siginfo info;
  return read(signal_fd, &info, sizeof(info)) == sizeof(info);
}

// The toolchain; one without a library if there is none.
absl::StatusOr<Toolchain> LocateToolchain(const Options& options) {
  absl::StatusOr<Toolchain> toolchain = Toolchain{};
  for (const std::string& dir : options.nvrtc_extra_dirs) {
    toolchain = FindToolchain(options.nvrtc_path, dir);
    if (toolchain.ok()) return toolchain;
  }
  if (!options.nvrtc_path.empty()) return toolchain;
  spdlog::warn("No NVRTC: {}", std::string(toolchain.status().message()));
  return Toolchain{};
}

absl::StatusOr<std::shared_ptr<CompilePool>> StartPool(
    const Options& options, const Toolchain& toolchain) {
  if (toolchain.library_path.empty()) return std::shared_ptr<CompilePool>();
  CompilePool::Options pool_options;
  pool_options.executable = options.executable;
  pool_options.toolchain = toolchain;
  pool_options.max_workers = options.workers;
  absl::StatusOr<std::unique_ptr<CompilePool>> pool =
      CompilePool::Start(std::move(pool_options));
  if (!pool.ok()) return pool.status();
  return std::shared_ptr<CompilePool>(*std::move(pool));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const Options& options) {
  std::unique_ptr<Daemon> daemon(new Daemon);
  absl::Status status = PrepareSocketDir(options.socket_path);
  if (!status.ok()) return status;
  absl::StatusOr<FileDescriptor> lock = LockSocket(options.socket_path);
  if (!lock.ok()) return lock.status();
  daemon->lock_ = *std::move(lock);
  status = daemon->StartFront(options);
  if (!status.ok()) return status;
  status = daemon->Listen();
  if (!status.ok()) return status;
  daemon->LogStart();
  return daemon;
}

absl::Status Daemon::StartFront(const Options& options) {
  front_.options = options;
  front_.started = steady_clock::now();
  front_.maintenance = std::make_unique<EventLoop>("kiln-cache");
  front_.sessions = std::make_unique<SessionTable>();

  DiskCache::Options cache_options;
  cache_options.directory = options.cache_dir;
  cache_options.limit_bytes = options.cache_limit_bytes;
  absl::StatusOr<std::unique_ptr<DiskCache>> disk =
      DiskCache::Open(std::move(cache_options));
  if (!disk.ok()) return disk.status();
  front_.disk = *std::move(disk);

  front_.tunings = std::make_unique<TuningStore>(
      (front_.disk->directory() / "tunings").string(), nullptr);

  const absl::StatusOr<Toolchain> toolchain = LocateToolchain(options);
  if (!toolchain.ok()) return toolchain.status();
  front_.nvrtc_version = toolchain->version;
  front_.toolchain_id = toolchain->id.empty()
                            ? OnlyToolchain(front_.disk->List())
                            : toolchain->id;
  front_.requests = std::make_unique<KeyedRequestTable>(front_.toolchain_id);
  absl::StatusOr<std::shared_ptr<CompilePool>> pool =
      StartPool(options, *toolchain);
  if (!pool.ok()) return pool.status();
  front_.artifacts =
      std::make_unique<ArtifactProvider>(*front_.disk, *std::move(pool));

  if (!options.record_path.empty()) {
    absl::StatusOr<std::unique_ptr<RequestRecorder>> recorder =
        RequestRecorder::Open(options.record_path);
    if (!recorder.ok()) return recorder.status();
    front_.recorder = *std::move(recorder);
  }
  front_.devices = std::make_unique<DeviceTable>(
      options.executable, CountGpus(),
      [this](const std::string& device, const std::string& reason) {
        for (const auto& session : front_.sessions->All()) {
          session->ExecutorRestarted(device, reason);
        }
      },
      [this](const std::string& device, bool usable) {
        front_.health.Set(device, usable);
      });
  for (const std::string& device : front_.devices->names()) {
    front_.health.Set(device, true);
  }
  WarmUp();
  return absl::OkStatus();
}

absl::Status Daemon::Listen() {
  // Never undone: gRPC ends with its last object, here the last connection, and
  // then joins a thread that polls for up to 10 s after a write that had to
  // wait. The next connection's gRPC, and the process's end, wait for that.
  grpc_init();
  // A default of the process, read by each connection's server.
  grpc::EnableDefaultHealthCheckService(true);
  const std::string& path = front_.options.socket_path;
  absl::StatusOr<ListenSocket> side =
      ListenSocket::Open(path + kSideSocketSuffix);
  if (!side.ok()) return side.status();
  absl::StatusOr<ListenSocket> main = ListenSocket::Open(path);
  if (!main.ok()) return main.status();

  AcceptLoop::Options loop_options;
  loop_options.max_connections = front_.options.max_connections;
  side_loop_ = std::make_unique<AcceptLoop>(
      *std::move(side), loop_options, [this](FileDescriptor fd, const Peer&) {
        ReceiveDescriptor(fd, *front_.sessions);
        return std::unique_ptr<Connection>();
      });
  accept_loop_ = std::make_unique<AcceptLoop>(
      *std::move(main), loop_options,
      [this](FileDescriptor fd, const Peer& peer) {
        return GrpcConnection::Serve(front_, std::move(fd), peer);
      });
  return absl::OkStatus();
}

void Daemon::LogStart() const {
  const DiskCache::Counters cache = front_.disk->counters();
  spdlog::info(
      "kilnd {} serves {} (pid {}, cache {} with {} entries, {} of {} bytes, "
      "NVRTC {}, devices {})",
      kVersion, front_.options.socket_path, getpid(),
      front_.disk->directory().string(), cache.entries, cache.size_bytes,
      cache.limit_bytes,
      front_.nvrtc_version.empty() ? "none" : front_.nvrtc_version,
      fmt::join(front_.devices->names(), " "));
}

bool Daemon::idle() const {
  return accept_loop_->open_connections() == 0 && front_.activity.calls() == 0;
}

void Daemon::WaitForEnd(int signal_fd) {
  for (;;) {
    if (SignalWithin(signal_fd, kIdlePoll)) return;
    if (!idle()) front_.activity.Touch();
    if (front_.options.idle_exit &&
        front_.activity.idle() >= *front_.options.idle_exit) {
      spdlog::info("Nobody needs the daemon: exiting");
      return;
    }
  }
}

void Daemon::Drain(int signal_fd) {
  const milliseconds grace = front_.options.drain;
  const auto deadline = steady_clock::now() + grace;
  spdlog::info("Draining for at most {} ms ({} calls under way)", grace.count(),
               front_.activity.calls());
  front_.activity.StartDrain();
  accept_loop_->StopAccepting();
  v1::SessionEvent event;
  event.mutable_draining()->set_grace_ms(grace.count());
  for (const auto& session : front_.sessions->All()) session->Push(event);

  while (front_.activity.calls() > 0 && steady_clock::now() < deadline) {
    if (SignalWithin(signal_fd, kDrainPoll)) break;
  }
  const absl::Status over = absl::UnavailableError("The daemon is stopping");
  for (const auto& session : front_.sessions->All()) {
    session->CloseStream(over);
  }
  front_.artifacts->StopCompiling();
  front_.devices->Stop();
  const auto last = steady_clock::now() + kFarewell;
  while (front_.streams.calls() + front_.activity.calls() > 0 &&
         steady_clock::now() < last) {
    SignalWithin(signal_fd, kDrainPoll);
  }
}

Daemon::~Daemon() {
  // Connections first: their services use everything else.
  const bool served = accept_loop_ != nullptr;
  accept_loop_.reset();
  side_loop_.reset();
  if (served) spdlog::info("kilnd stopped");
}

}  // namespace kiln
