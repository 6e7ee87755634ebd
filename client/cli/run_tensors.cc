#include "client/cli/run_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "client/cli/npy.h"
#include "client/cli/plan_file.h"
#include "client/cli/random_tensor.h"
#include "jit/plan/errors.h"

namespace kiln::cli {
namespace {

// All bits set: a NaN in every storage type.
constexpr int kPoison = 0xff;

std::string NameOf(const Plan& plan, ValueId value, size_t position) {
  const size_t index = value.index;
  const std::string& name = index < plan.inputs.size()
                                ? plan.inputs[index].name
                                : plan.ops[index - plan.inputs.size()].name;
  return name.empty() ? fmt::format("output{}", position) : name;
}

std::vector<std::string> InputNames(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlanInput& input : plan.inputs) names.push_back(input.name);
  return names;
}

absl::Status LoadInput(const std::string& path, const TensorDesc& desc,
                       void* elements) {
  const absl::StatusOr<std::string> file = ReadFile(path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<std::string> data = ParseNpy(*file, desc);
  if (!data.ok()) {
    return absl::Status(
        data.status().code(),
        fmt::format("{}: {}", path, std::string(data.status().message())));
  }
  std::memcpy(elements, data->data(), data->size());
  return absl::OkStatus();
}

absl::Status AddInputs(Session& session, const Plan& plan,
                       const std::map<int, std::string>& files, uint64_t seed,
                       RunTensors& tensors) {
  for (int i = 0; i < static_cast<int>(plan.inputs.size()); ++i) {
    const TensorDesc& desc = plan.inputs[i].desc;
    absl::StatusOr<SharedBuffer> buffer = session.CreateBuffer(SizeBytes(desc));
    if (!buffer.ok()) return buffer.status();
    const auto file = files.find(i);
    if (file == files.end()) {
      FillRandom(plan, i, seed, buffer->data());
    } else {
      const absl::Status loaded = LoadInput(file->second, desc, buffer->data());
      if (!loaded.ok()) return loaded;
    }
    tensors.inputs.push_back(*std::move(buffer));
  }
  return absl::OkStatus();
}

absl::Status AddOutputs(Session& session, const Plan& plan,
                        const std::vector<TensorDesc>& values,
                        RunTensors& tensors) {
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const PlanOutput& output = plan.outputs[i];
    const TensorDesc desc = {output.dtype, values[output.value.index].dims};
    absl::StatusOr<SharedBuffer> buffer = session.CreateBuffer(SizeBytes(desc));
    if (!buffer.ok()) return buffer.status();
    std::memset(buffer->data(), kPoison, buffer->size_bytes());
    tensors.outputs.push_back(*std::move(buffer));
    tensors.output_descs.push_back(desc);
    tensors.output_names.push_back(NameOf(plan, output.value, i));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> FindName(const std::vector<std::string>& names,
                             const std::string& name, std::string_view what) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  return InvalidField(what, "the plan has none of that name", name,
                      fmt::format("{}", fmt::join(names, ", ")));
}

absl::StatusOr<RunTensors> MakeTensors(
    Session& session, const Plan& plan, const std::vector<TensorDesc>& values,
    const std::map<std::string, std::string>& files, uint64_t seed) {
  std::map<int, std::string> file_of_input;
  for (const auto& entry : files) {
    const auto index = FindName(InputNames(plan), entry.first, "--input");
    if (!index.ok()) return index.status();
    file_of_input[*index] = entry.second;
  }
  RunTensors tensors;
  absl::Status made = AddInputs(session, plan, file_of_input, seed, tensors);
  if (made.ok()) made = AddOutputs(session, plan, values, tensors);
  if (!made.ok()) return made;
  return tensors;
}

Bindings BindAll(const RunTensors& tensors) {
  Bindings bindings;
  for (size_t i = 0; i < tensors.inputs.size(); ++i) {
    bindings.Input(static_cast<int>(i), tensors.inputs[i]);
  }
  for (size_t i = 0; i < tensors.outputs.size(); ++i) {
    bindings.Output(static_cast<int>(i), tensors.outputs[i]);
  }
  return bindings;
}

absl::Status SaveOutputs(const RunTensors& tensors,
                         const std::map<std::string, std::string>& files) {
  for (const auto& entry : files) {
    const auto index = FindName(tensors.output_names, entry.first, "--output");
    if (!index.ok()) return index.status();
    const SharedBuffer& buffer = tensors.outputs[*index];
    const std::string_view elements(static_cast<const char*>(buffer.data()),
                                    buffer.size_bytes());
    const absl::Status written = WriteFile(
        entry.second, FormatNpy(tensors.output_descs[*index], elements));
    if (!written.ok()) return written;
  }
  return absl::OkStatus();
}

}  // namespace kiln::cli
