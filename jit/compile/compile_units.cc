#include "jit/compile/compile_units.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "jit/artifact/digest.h"
#include "jit/compile/errors.h"
#include "jit/compile/nvrtc_compiler.h"
#include "jit/compile/ptxas_log.h"
#include "jit/plan/errors.h"
#include "kernel_sources/kernel_sources.h"

namespace kiln {
namespace {

// More units than this at once slow each other down inside NVRTC.
constexpr size_t kMaxThreads = 4;

std::vector<NvrtcCompiler::Header> Headers() {
  std::vector<NvrtcCompiler::Header> headers;
  for (const KernelSource& source : KernelSources()) {
    headers.push_back({std::string(source.name), std::string(source.text)});
  }
  return headers;
}

absl::StatusOr<CompiledUnit> CompileSource(
    const std::string& source, const Unit& unit, const std::string& arch,
    const std::vector<NvrtcCompiler::Header>& headers, NvrtcCompiler* nvrtc) {
  absl::StatusOr<NvrtcCompiler::Output> output =
      nvrtc->Compile(source, headers, arch);
  CompiledUnit compiled;
  if (!output.ok()) {
    compiled.log = DetailOf(output.status()).compile_log;
    if (!IsRefused(compiled.log)) return output.status();
    compiled.refused = unit.entries.front().symbol;
    compiled.module.source = source;
    return compiled;
  }
  for (const EntrySpec& spec : unit.entries) {
    const auto usage = FindKernelUsage(output->log, spec.symbol);
    if (!usage) return NoKernelInfo(spec.symbol, source, output->log);
    if (usage->stack_bytes > 0) compiled.refused = spec.symbol;
    KernelEntry entry;
    entry.symbol = spec.symbol;
    entry.registers = usage->registers;
    entry.static_shared_bytes = usage->static_shared_bytes;
    entry.max_dynamic_shared_bytes = spec.dynamic_shared_bytes;
    entry.local_bytes = usage->stack_bytes;
    compiled.module.entries.push_back(std::move(entry));
  }
  compiled.log = std::move(output->log);
  compiled.module.cubin = std::move(output->cubin);
  compiled.module.sha256 = Sha256Hex(compiled.module.cubin);
  compiled.module.source = source;
  return compiled;
}

// Of each entry that puts words aside; 0 of others.
std::vector<int> RegistersOfSpills(const CompiledUnit& compiled) {
  std::vector<int> registers;
  for (const KernelEntry& entry : compiled.module.entries) {
    registers.push_back(entry.local_bytes > 0 ? entry.registers : 0);
  }
  return registers;
}

absl::StatusOr<CompiledUnit> CompileUnit(
    const Unit& unit, const std::string& arch,
    const std::vector<NvrtcCompiler::Header>& headers, NvrtcCompiler* nvrtc) {
  absl::StatusOr<CompiledUnit> compiled =
      CompileSource(unit.source, unit, arch, headers, nvrtc);
  if (!compiled.ok() || compiled->module.cubin.empty() ||
      compiled->refused.empty() || !unit.write_with_more) {
    return compiled;
  }
  const std::string roomier =
      unit.write_with_more(RegistersOfSpills(*compiled));
  if (roomier.empty()) return compiled;
  absl::StatusOr<CompiledUnit> again =
      CompileSource(roomier, unit, arch, headers, nvrtc);
  const bool helped = again.ok() && again->refused.empty();
  return helped ? std::move(again) : std::move(compiled);
}

}  // namespace

absl::StatusOr<std::vector<CompiledUnit>> CompileUnits(
    const std::vector<Unit>& units, const std::string& arch,
    NvrtcCompiler* nvrtc) {
  const std::vector<NvrtcCompiler::Header> headers = Headers();
  std::vector<std::optional<absl::StatusOr<CompiledUnit>>> results(
      units.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < units.size(); i = next++) {
      results[i] = CompileUnit(units[i], arch, headers, nvrtc);
    }
  };

  const size_t processors = std::max(std::thread::hardware_concurrency(), 1u);
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < std::min({units.size(), processors, kMaxThreads});
       ++i) {
    helpers.emplace_back(work);
  }
  work();
  for (std::thread& helper : helpers) helper.join();

  std::vector<CompiledUnit> compiled;
  for (std::optional<absl::StatusOr<CompiledUnit>>& result : results) {
    if (!result->ok()) return result->status();
    compiled.push_back(**std::move(result));
  }
  return compiled;
}

}  // namespace kiln
