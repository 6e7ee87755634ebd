#ifndef KILN_SERVER_DEVICE_TABLE_H_
#define KILN_SERVER_DEVICE_TABLE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cache/mutex.h"
#include "kiln/v1/service.pb.h"
#include "server/event_loop.h"
#include "server/executor_process.h"

namespace kiln {

// GPUs of this machine: how many /dev/nvidia<N> there are. Opens none.
int CountGpus();

// The devices of this daemon and their executors. An executor process starts
// when its device is first used. Thread-safe.
class DeviceTable {
 public:
  using OnDeath =
      std::function<void(const std::string& device, const std::string& reason)>;

  // When a device becomes unusable, and usable again.
  using OnHealth = std::function<void(const std::string& device, bool usable)>;

  // Devices: "cpu" and "cuda:0" to "cuda:<gpus - 1>". The callbacks run on
  // threads of the table.
  DeviceTable(const std::string& executable, int gpus, const OnDeath& on_death,
              const OnHealth& on_health);
  ~DeviceTable();  // Stop
  DeviceTable(const DeviceTable&) = delete;
  DeviceTable& operator=(const DeviceTable&) = delete;

  // Kills the executors; calls under way are answered UNAVAILABLE.
  void Stop();

  // The executor of `device`. Errors: FAILED_PRECONDITION: unknown device;
  // UNAVAILABLE: stopped.
  absl::StatusOr<std::shared_ptr<ExecutorProcess>> Find(
      const std::string& device);

  // Closes a memory, then calls `done`; at once if the table is stopped.
  void Close(const std::string& device, uint64_t memory,
             std::function<void()> done);

  // Tells every executor that is in use that a session has ended.
  void EndSession(const std::string& session);

  // Asks every device what it is, once, and calls `done` when all have
  // answered or after 5 s. Starts the executors of GPUs.
  void WhenDescribed(std::function<void()> done);

  // What is known of each device now.
  std::vector<v1::DeviceInfo> List() const;

  // The UUID of `device`; empty: none, or not known yet.
  std::string UuidOf(const std::string& device) const;

  std::vector<std::string> names() const;

 private:
  struct Device {
    std::string name;
    std::shared_ptr<ExecutorProcess> executor;  // null once stopped
    bool used = false;
    std::optional<DeviceDescription> description;
    std::string problem;  // that Describe answered
  };

  // Null if there is none, or the table is stopped.
  std::shared_ptr<ExecutorProcess> ExecutorOf(const std::string& name) const;
  void StartDescribing();
  void OnDescribed(size_t index,
                   const absl::StatusOr<DeviceDescription>& description);
  void AnswerWaiters();

  mutable Mutex mutex_;
  std::vector<Device> devices_ KILN_GUARDED_BY(mutex_);
  bool describing_ KILN_GUARDED_BY(mutex_) = false;
  int undescribed_ KILN_GUARDED_BY(mutex_) = 0;
  std::vector<std::function<void()>> waiters_ KILN_GUARDED_BY(mutex_);

  EventLoop timer_loop_;
};

}  // namespace kiln

#endif  // KILN_SERVER_DEVICE_TABLE_H_
