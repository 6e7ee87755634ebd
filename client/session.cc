#include "client/session.h"

#include <fmt/format.h>

#include <utility>

#include "client/cuda_memory.h"
#include "client/memory_file.h"
#include "client/session_state.h"
#include "jit/plan/errors.h"

namespace kiln {
namespace {

std::string_view NameOfValue(const Plan& plan, ValueId value) {
  const size_t index = value.index;
  if (index < plan.inputs.size()) return plan.inputs[index].name;
  return plan.ops[index - plan.inputs.size()].name;
}

std::vector<std::string_view> NamesOf(const Plan& plan, bool outputs) {
  std::vector<std::string_view> names;
  if (outputs) {
    for (const PlanOutput& output : plan.outputs) {
      names.push_back(NameOfValue(plan, output.value));
    }
  } else {
    for (const PlanInput& input : plan.inputs) names.push_back(input.name);
  }
  return names;
}

// The slot of the input or output that `which` names; -1: not used.
absl::StatusOr<int> FindSlot(const CompiledPlan& plan, bool is_output,
                             const std::variant<int, std::string>& which) {
  const std::vector<int>& slots =
      is_output ? plan.slot_of_output : plan.slot_of_input;
  const std::string_view field = is_output ? "outputs" : "inputs";
  if (const int* index = std::get_if<int>(&which)) {
    if (*index >= 0 && *index < static_cast<int>(slots.size())) {
      return slots[*index];
    }
    return InvalidField(field, "there is no such position",
                        std::to_string(*index),
                        fmt::format("0 to {}", slots.size() - 1));
  }
  const std::string& name = std::get<std::string>(which);
  const std::vector<std::string_view> names = NamesOf(plan.plan, is_output);
  for (size_t i = 0; i < names.size() && i < slots.size(); ++i) {
    if (names[i] == name) return slots[i];
  }
  return InvalidField(field, "there is no such name", name,
                      fmt::format("{}", fmt::join(names, ", ")));
}

}  // namespace

Session::Session(std::shared_ptr<client::SessionState> state)
    : state_(std::move(state)) {}

const std::string& Session::id() const { return state_->id(); }

absl::StatusOr<SharedBuffer> Session::CreateBuffer(int64_t size_bytes,
                                                   const std::string& device) {
  if (device != "cpu") {
    const auto context = state_->Cuda(device);
    if (!context.ok()) return context.status();
    absl::StatusOr<client::CudaMemory> memory =
        client::CudaMemory::Allocate(*context, size_bytes);
    if (!memory.ok()) return memory.status();
    return SharedBuffer::Register(state_, device, *std::move(memory));
  }
  absl::StatusOr<client::MemoryFile> memory =
      client::MemoryFile::Create(size_bytes);
  if (!memory.ok()) return memory.status();
  return SharedBuffer::Register(state_, device, *std::move(memory));
}

absl::StatusOr<SharedBuffer> Session::RegisterCuda(void* address,
                                                   int64_t size_bytes,
                                                   const std::string& device) {
  if (size_bytes <= 0) {
    return InvalidField("size_bytes", "a buffer holds at least one byte",
                        std::to_string(size_bytes), "1 or more");
  }
  const auto context = state_->Cuda(device);
  if (!context.ok()) return context.status();
  return SharedBuffer::Register(
      state_, device,
      client::CudaMemory(*context, reinterpret_cast<uintptr_t>(address),
                         size_bytes));
}

absl::StatusOr<ExecuteTiming> Session::Execute(const CompiledPlan& plan,
                                               const Bindings& bindings,
                                               const ExecuteOptions& options) {
  v1::ExecuteRequest request;
  request.set_session(state_->id());
  request.set_key(plan.key);
  request.set_device(options.device);
  request.set_parameter_version(options.parameter_version);
  for (const Bindings::Entry& entry : bindings.entries_) {
    const absl::StatusOr<int> slot =
        FindSlot(plan, entry.is_output, entry.which);
    if (!slot.ok()) return slot.status();
    if (*slot < 0) continue;
    v1::Binding& binding = *request.add_bindings();
    binding.set_slot(*slot);
    binding.set_buffer(entry.buffer->id());
    binding.set_offset_bytes(entry.offset_bytes);
  }

  const client::Connection& connection = state_->connection();
  const absl::StatusOr<v1::ExecuteResponse> response =
      connection.Call(connection.executor(), &v1::Executor::Stub::Execute,
                      request, options.timeout);
  if (!response.ok()) return response.status();
  return ExecuteTiming{response->execute_us(), response->total_us()};
}

}  // namespace kiln
