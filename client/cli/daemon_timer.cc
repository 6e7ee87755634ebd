#include "client/cli/daemon_timer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "client/cli/random_tensor.h"

namespace kiln::cli {
namespace {

constexpr int64_t kAlign = 256;
// Several times the largest L2 cache; and as many sets as are worth their
// registration.
constexpr int64_t kOutgrownBytes = int64_t{256} << 20;
constexpr int64_t kMaxSets = 16;
// Random numbers that are made of one tensor; beyond them they repeat.
constexpr int64_t kMaxRandom = int64_t{1} << 24;

int64_t RoundUp(int64_t bytes) {
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

void FillTensor(const Plan& plan, int input, char* elements) {
  const TensorDesc& desc = plan.inputs[input].desc;
  const int64_t size_bytes = SizeBytes(desc);
  const int64_t count = NumElements(desc.dims);
  if (count <= kMaxRandom) {
    FillRandom(plan, input, /*seed=*/0, elements);
    return;
  }
  Plan small = plan;
  small.inputs[input].desc.dims = {kMaxRandom};
  FillRandom(small, input, /*seed=*/0, elements);
  const int64_t block = SizeBytes(small.inputs[input].desc);
  for (int64_t at = block; at < size_bytes; at += block) {
    std::memcpy(elements + at, elements,
                static_cast<size_t>(std::min(block, size_bytes - at)));
  }
}

absl::Status CheckMemory(int64_t bytes) {
  const double memory_bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                              static_cast<double>(sysconf(_SC_PAGESIZE));
  if (static_cast<double>(bytes) <= memory_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(fmt::format(
      "The inputs do not fit in memory ({} bytes are needed, the machine has "
      "{:.0f})",
      bytes, memory_bytes));
}

}  // namespace

SetLayout LayOutSets(const Plan& plan, const std::vector<TensorDesc>& values) {
  SetLayout layout;
  for (const PlanInput& input : plan.inputs) {
    layout.inputs.push_back(layout.size_bytes);
    layout.size_bytes += RoundUp(SizeBytes(input.desc));
  }
  layout.inputs_bytes = layout.size_bytes;
  for (const PlanOutput& output : plan.outputs) {
    layout.outputs.push_back(layout.size_bytes);
    layout.size_bytes +=
        RoundUp(SizeBytes({output.dtype, values[output.value.index].dims}));
  }
  const int64_t wanted =
      kOutgrownBytes / std::max<int64_t>(layout.size_bytes, 1) + 1;
  layout.sets = static_cast<int>(std::min(wanted, kMaxSets));
  return layout;
}

absl::StatusOr<std::unique_ptr<DaemonTimer>> DaemonTimer::Make(
    Client& client, const Plan& plan, const std::vector<TensorDesc>& values,
    const std::string& device) {
  SetLayout layout = LayOutSets(plan, values);
  const absl::Status fits = CheckMemory(layout.inputs_bytes);
  if (!fits.ok()) return fits;
  absl::StatusOr<Session> session = client.OpenSession();
  if (!session.ok()) return session.status();
  std::unique_ptr<DaemonTimer> timer(
      new DaemonTimer(*std::move(session), device, std::move(layout)));
  const absl::Status filled = timer->Fill(plan);
  if (!filled.ok()) return filled;
  return timer;
}

absl::Status DaemonTimer::Fill(const Plan& plan) {
  std::vector<char> inputs(static_cast<size_t>(layout_.inputs_bytes));
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    FillTensor(plan, static_cast<int>(i), inputs.data() + layout_.inputs[i]);
  }
  for (int set = 0; set < layout_.sets; ++set) {
    absl::StatusOr<SharedBuffer> buffer =
        session_.CreateBuffer(layout_.size_bytes, device_);
    if (!buffer.ok()) return buffer.status();
    const absl::Status copied =
        buffer->CopyFrom(std::as_bytes(std::span(inputs)));
    if (!copied.ok()) return copied;
    buffers_.push_back(*std::move(buffer));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> DaemonTimer::Time(const CompiledPlan& plan, int set) {
  Bindings bindings;
  for (size_t i = 0; i < layout_.inputs.size(); ++i) {
    const bool stays = plan.plan.inputs[i].role == InputRole::kParameter;
    bindings.Input(static_cast<int>(i), buffers_[stays ? 0 : set],
                   layout_.inputs[i]);
  }
  for (size_t i = 0; i < layout_.outputs.size(); ++i) {
    bindings.Output(static_cast<int>(i), buffers_[set], layout_.outputs[i]);
  }
  ExecuteOptions options;
  options.device = device_;
  options.parameter_version = 1;
  const absl::StatusOr<ExecuteTiming> timing =
      session_.Execute(plan, bindings, options);
  if (!timing.ok()) return timing.status();
  return timing->execute_us;
}

}  // namespace kiln::cli
