#include "client/cli/run_tensors.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "client/cli/file_bytes.h"
#include "client/cli/npy.h"
#include "client/cli/random_tensor.h"
#include "jit/plan/errors.h"

namespace kiln::cli {
namespace {

// All bits set: a NaN in every storage type.
constexpr char kPoison = '\xff';

std::string NameOf(const Plan& plan, ValueId value, size_t position) {
  const size_t index = value.index;
  const std::string& name = index < plan.inputs.size()
                                ? plan.inputs[index].name
                                : plan.ops[index - plan.inputs.size()].name;
  return name.empty() ? fmt::format("output{}", position) : name;
}

// No name of a plan has a '#'.
void AddTensor(const std::string& name, const TensorDesc& desc,
               std::vector<RunTensor>& tensors) {
  const bool is_taken =
      std::any_of(tensors.begin(), tensors.end(),
                  [&](const RunTensor& other) { return other.name == name; });
  tensors.push_back(
      {is_taken ? fmt::format("{}#{}", name, tensors.size()) : name, desc,
       std::vector<char>(SizeBytes(desc), kPoison)});
}

absl::StatusOr<int> FindName(const std::vector<RunTensor>& tensors,
                             const std::string& name, std::string_view option) {
  std::string known;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == name) return static_cast<int>(i);
    known += (i == 0 ? "" : ", ") + tensors[i].name;
  }
  return InvalidField(option, "the plan has none of that name", name, known);
}

absl::Status LoadInput(const std::string& path, RunTensor& tensor) {
  const absl::StatusOr<std::string> file =
      ReadFile(path, "input " + tensor.name, MaxNpyBytes(tensor.desc));
  if (!file.ok()) return file.status();
  const absl::StatusOr<std::string> data = ParseNpy(*file, tensor.desc);
  if (!data.ok()) {
    return absl::Status(
        data.status().code(),
        fmt::format("{}: {}", path, std::string(data.status().message())));
  }
  tensor.elements.assign(data->begin(), data->end());
  return absl::OkStatus();
}

// The path that `files` gives for each tensor; empty: none.
absl::StatusOr<std::vector<std::string>> PathsOf(
    const std::vector<RunTensor>& tensors,
    const std::map<std::string, std::string>& files, std::string_view option) {
  std::vector<std::string> paths(tensors.size());
  for (const auto& entry : files) {
    const absl::StatusOr<int> index = FindName(tensors, entry.first, option);
    if (!index.ok()) return index.status();
    paths[*index] = entry.second;
  }
  return paths;
}

// Each tensor is here, and once more in memory that is shared.
absl::Status CheckMemory(const Plan& plan,
                         const std::vector<TensorDesc>& values) {
  double bytes = 0;
  for (const PlanInput& input : plan.inputs) bytes += SizeBytes(input.desc);
  for (const PlanOutput& output : plan.outputs) {
    bytes += SizeBytes({output.dtype, values[output.value.index].dims});
  }
  const double memory_bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                              static_cast<double>(sysconf(_SC_PAGESIZE));
  if (2 * bytes <= memory_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      fmt::format("The tensors do not fit in memory (2 x {:.0f} bytes are "
                  "needed, the machine has {:.0f})",
                  bytes, memory_bytes));
}

}  // namespace

absl::StatusOr<RunTensors> MakeTensors(
    const Plan& plan, const std::vector<TensorDesc>& values,
    const std::map<std::string, std::string>& files, uint64_t seed) {
  const absl::Status fits = CheckMemory(plan, values);
  if (!fits.ok()) return fits;
  RunTensors tensors;
  for (const PlanInput& input : plan.inputs) {
    AddTensor(input.name, input.desc, tensors.inputs);
  }
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const PlanOutput& output = plan.outputs[i];
    const TensorDesc desc = {output.dtype, values[output.value.index].dims};
    AddTensor(NameOf(plan, output.value, i), desc, tensors.outputs);
  }
  const auto paths = PathsOf(tensors.inputs, files, "--input");
  if (!paths.ok()) return paths.status();
  for (size_t i = 0; i < paths->size(); ++i) {
    RunTensor& input = tensors.inputs[i];
    if ((*paths)[i].empty()) {
      FillRandom(plan, static_cast<int>(i), seed, input.elements.data());
      continue;
    }
    const absl::Status loaded = LoadInput((*paths)[i], input);
    if (!loaded.ok()) return loaded;
  }
  return tensors;
}

absl::Status CheckOutputNames(const RunTensors& tensors,
                              const std::map<std::string, std::string>& files) {
  return PathsOf(tensors.outputs, files, "--output").status();
}

absl::Status SaveOutputs(const RunTensors& tensors,
                         const std::map<std::string, std::string>& files) {
  const auto paths = PathsOf(tensors.outputs, files, "--output");
  if (!paths.ok()) return paths.status();
  for (size_t i = 0; i < paths->size(); ++i) {
    if ((*paths)[i].empty()) continue;
    const RunTensor& output = tensors.outputs[i];
    const std::string_view elements(output.elements.data(),
                                    output.elements.size());
    const absl::Status written =
        WriteFile((*paths)[i], FormatNpy(output.desc, elements));
    if (!written.ok()) return written;
  }
  return absl::OkStatus();
}

}  // namespace kiln::cli
