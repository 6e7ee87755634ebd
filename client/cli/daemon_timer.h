#ifndef KILN_CLIENT_CLI_DAEMON_TIMER_H_
#define KILN_CLIENT_CLI_DAEMON_TIMER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/tuning_measurement.h"
#include "client/client.h"

namespace kiln::cli {

// Where the tensors of a plan lie in one buffer for each set.
struct SetLayout {
  std::vector<int64_t> inputs;   // offsets, in bytes
  std::vector<int64_t> outputs;  // behind all inputs
  int64_t inputs_bytes = 0;
  int64_t size_bytes = 0;
  int sets = 1;  // so many that together they outgrow the caches of a GPU
};

SetLayout LayOutSets(const Plan& plan, const std::vector<TensorDesc>& values);

// Runs plans in the daemon on memory of a device that is shared with it: random
// inputs, the same in every set. Parameters stay where they are, as they do in
// use, so that what is prepared from them is prepared once.
class DaemonTimer : public PlanTimer {
 public:
  // Errors: those of Client::OpenSession and Session::CreateBuffer;
  // RESOURCE_EXHAUSTED: one set does not fit in the memory of this machine.
  static absl::StatusOr<std::unique_ptr<DaemonTimer>> Make(
      Client& client, const Plan& plan, const std::vector<TensorDesc>& values,
      const std::string& device);

  int sets() const override { return static_cast<int>(buffers_.size()); }
  absl::StatusOr<int64_t> Time(const CompiledPlan& plan, int set) override;

 private:
  DaemonTimer(Session session, std::string device, SetLayout layout)
      : session_(std::move(session)),
        device_(std::move(device)),
        layout_(std::move(layout)) {}
  absl::Status Fill(const Plan& plan);

  Session session_;
  const std::string device_;
  const SetLayout layout_;
  std::vector<SharedBuffer> buffers_;  // one for each set
};

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_DAEMON_TIMER_H_
