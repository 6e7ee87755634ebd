#include "server/device_table.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "server/errors.h"

namespace kiln {
namespace {

// An executor makes a CUDA context first, which takes up to 3 s with 8 GPUs.
constexpr std::chrono::milliseconds kDescribeTimeout{5'000};
// The reference evaluates in double on one core.
constexpr std::chrono::minutes kCpuDeadline{10};

ExecutorProcess::Options OptionsFor(const std::string& executable,
                                    const std::string& device,
                                    const DeviceTable::OnDeath& on_death,
                                    const DeviceTable::OnHealth& on_health) {
  ExecutorProcess::Options options;
  options.executable = executable;
  options.device = device;
  if (device == "cpu") options.execute_deadline = kCpuDeadline;
  options.on_death = [device, on_death](std::string reason) {
    spdlog::warn("The executor of {} died: {}", device, reason);
    on_death(device, reason);
  };
  options.on_health = [device, on_health](std::string problem) {
    if (problem.empty()) {
      spdlog::info("The device {} can be used again", device);
    } else {
      spdlog::error("The device {} is out of use: {}", device, problem);
    }
    on_health(device, problem.empty());
  };
  return options;
}

}  // namespace

int CountGpus() {
  constexpr std::string_view kPrefix = "nvidia";
  int count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename().string();
    if (name.size() <= kPrefix.size() ||
        name.compare(0, kPrefix.size(), kPrefix) != 0) {
      continue;
    }
    count += std::all_of(name.begin() + kPrefix.size(), name.end(),
                         [](unsigned char c) { return std::isdigit(c); });
  }
  return count;
}

DeviceTable::DeviceTable(const std::string& executable, int gpus,
                         const OnDeath& on_death, const OnHealth& on_health)
    : timer_loop_("kiln-devices") {
  std::vector<std::string> names = {"cpu"};
  for (int i = 0; i < gpus; ++i) names.push_back(fmt::format("cuda:{}", i));
  MutexLock lock(mutex_);
  for (const std::string& name : names) {
    Device device;
    device.name = name;
    device.executor = ExecutorProcess::Create(
        OptionsFor(executable, name, on_death, on_health));
    devices_.push_back(std::move(device));
  }
}

DeviceTable::~DeviceTable() { Stop(); }

void DeviceTable::Stop() {
  std::vector<std::shared_ptr<ExecutorProcess>> executors;
  {
    MutexLock lock(mutex_);
    for (Device& device : devices_) {
      executors.push_back(std::move(device.executor));
    }
  }
  timer_loop_.Stop();
}

std::shared_ptr<ExecutorProcess> DeviceTable::ExecutorOf(
    const std::string& name) const {
  MutexLock lock(mutex_);
  for (const Device& device : devices_) {
    if (device.name == name) return device.executor;
  }
  return nullptr;
}

absl::StatusOr<std::shared_ptr<ExecutorProcess>> DeviceTable::Find(
    const std::string& name) {
  MutexLock lock(mutex_);
  for (Device& device : devices_) {
    if (device.name != name) continue;
    if (!device.executor) {
      return absl::UnavailableError("The daemon is stopping; retry");
    }
    device.used = true;
    return device.executor;
  }
  return UnknownDevice(name);
}

void DeviceTable::Close(const std::string& name, uint64_t memory,
                        std::function<void()> done) {
  const std::shared_ptr<ExecutorProcess> executor = ExecutorOf(name);
  if (!executor) return done();
  executor->Close(memory, std::move(done));
}

void DeviceTable::EndSession(const std::string& session) {
  std::vector<std::shared_ptr<ExecutorProcess>> executors;
  {
    MutexLock lock(mutex_);
    for (const Device& device : devices_) {
      if (device.used && device.executor) executors.push_back(device.executor);
    }
  }
  for (const auto& executor : executors) executor->EndSession(session);
}

void DeviceTable::WhenDescribed(std::function<void()> done) {
  bool start = false;
  {
    MutexLock lock(mutex_);
    start = !describing_;
    if (start) undescribed_ = static_cast<int>(devices_.size());
    describing_ = true;
    if (undescribed_ > 0) waiters_.push_back(std::exchange(done, nullptr));
  }
  if (done) return done();
  timer_loop_.Post([this] {
    timer_loop_.After(kDescribeTimeout, [this] { AnswerWaiters(); });
  });
  if (start) StartDescribing();
}

void DeviceTable::StartDescribing() {
  const std::vector<std::string> all = names();
  for (size_t i = 0; i < all.size(); ++i) {
    const std::shared_ptr<ExecutorProcess> executor = ExecutorOf(all[i]);
    if (!executor) continue;
    executor->Describe(
        [this, i](const absl::StatusOr<DeviceDescription>& description) {
          OnDescribed(i, description);
        });
  }
}

void DeviceTable::OnDescribed(
    size_t index, const absl::StatusOr<DeviceDescription>& description) {
  {
    MutexLock lock(mutex_);
    if (description.ok()) {
      devices_[index].description = *description;
    } else {
      devices_[index].problem = std::string(description.status().message());
    }
    if (--undescribed_ > 0) return;
  }
  AnswerWaiters();
}

void DeviceTable::AnswerWaiters() {
  std::vector<std::function<void()>> waiters;
  {
    MutexLock lock(mutex_);
    waiters.swap(waiters_);
  }
  for (const auto& waiter : waiters) waiter();
}

std::vector<v1::DeviceInfo> DeviceTable::List() const {
  std::vector<v1::DeviceInfo> infos;
  MutexLock lock(mutex_);
  for (const Device& device : devices_) {
    v1::DeviceInfo info;
    info.set_device(device.name);
    if (device.executor) info.set_state(device.executor->state());
    // What keeps it from being described is forgotten when it works.
    if (!device.problem.empty() && info.state() == "idle") {
      info.set_state("unhealthy: " + device.problem);
    }
    if (device.description) {
      info.set_name(device.description->name);
      info.set_target(ToString(device.description->target));
      info.set_uuid(device.description->uuid);
      info.set_memory_bytes(device.description->memory_bytes);
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

std::string DeviceTable::UuidOf(const std::string& name) const {
  MutexLock lock(mutex_);
  for (const Device& device : devices_) {
    if (device.name != name || !device.description) continue;
    return device.description->uuid;
  }
  return {};
}

std::vector<std::string> DeviceTable::names() const {
  std::vector<std::string> names;
  MutexLock lock(mutex_);
  for (const Device& device : devices_) names.push_back(device.name);
  return names;
}

}  // namespace kiln
