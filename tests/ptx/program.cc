#include "tests/ptx/program.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "tests/ptx/decoder.h"
#include "tests/ptx/machine.h"

namespace kiln::ptx {
namespace {

// A variable of the module in global memory.
struct Variable {
  std::string name;
  std::vector<uint64_t> memory;  // aligned to eight bytes
  int64_t size_bytes = 0;
};

std::vector<uint64_t> InitialMemory(const VariableText& text) {
  std::vector<uint64_t> memory((text.size_bytes + 7) / 8);
  auto* const bytes = reinterpret_cast<std::byte*>(memory.data());
  for (size_t i = 0; i < text.values.size(); ++i) {
    std::memcpy(bytes + i * text.element_bytes, &text.values[i],
                text.element_bytes);
  }
  return memory;
}

}  // namespace

struct Program::State {
  std::vector<Variable> variables;
  std::map<std::string, DecodedEntry> entries;
};

Program::Program(std::unique_ptr<State> state) : state_(std::move(state)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

absl::StatusOr<Program> Program::Load(std::string_view text) {
  const absl::StatusOr<ModuleText> module = ParseModule(text);
  if (!module.ok()) return module.status();
  auto state = std::make_unique<State>();
  std::map<std::string, uint64_t> addresses;
  for (const VariableText& variable : module->variables) {
    if (variable.space == ".shared") continue;
    state->variables.push_back(
        {variable.name, InitialMemory(variable), variable.size_bytes});
    addresses[variable.name] =
        reinterpret_cast<uint64_t>(state->variables.back().memory.data());
  }
  for (const EntryText& entry : module->entries) {
    absl::StatusOr<DecodedEntry> decoded =
        DecodeEntry(*module, entry, addresses);
    if (!decoded.ok()) return decoded.status();
    state->entries.emplace(entry.name, *std::move(decoded));
  }
  return Program(std::move(state));
}

absl::Status Program::Run(const Launch& launch, GlobalMemory memory) const {
  const auto found = state_->entries.find(launch.entry);
  if (found == state_->entries.end()) {
    return absl::NotFoundError(
        fmt::format("The PTX has no entry '{}'.", launch.entry));
  }
  const DecodedEntry& entry = found->second;
  if (launch.args.size() != entry.num_parameters) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' has {} parameters ({} are given).", launch.entry,
                    entry.num_parameters, launch.args.size()));
  }
  for (const Variable& variable : state_->variables) {
    memory.Allow(variable.memory.data(), variable.size_bytes, true);
  }
  Grid grid;
  grid.blocks = launch.grid;
  grid.threads = launch.block;
  grid.cluster = launch.cluster;
  grid.parameters = reinterpret_cast<const std::byte*>(launch.args.data());
  grid.memory = &memory;
  grid.overlaps = launch.overlaps;
  grid.rounds_sums = launch.rounds_sums;
  const Machine::Program program = {
      entry.code.data(), entry.constants.data(), entry.register_bytes,
      entry.static_shared_bytes + launch.dynamic_shared_bytes, entry.special};
  Machine(program, &grid, launch.schedule_seed).Run(launch.resident_blocks);
  if (grid.error.empty()) return absl::OkStatus();
  return absl::InternalError(fmt::format("{}: {}", launch.entry, grid.error));
}

}  // namespace kiln::ptx
