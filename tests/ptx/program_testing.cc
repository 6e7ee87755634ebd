#include "tests/ptx/program_testing.h"

#include <array>
#include <cstring>

namespace kiln::ptx {
namespace {

std::string Module(const std::string& body) {
  return ".version 8.0\n.target sm_90a\n.address_size 64\n"
         ".extern .shared .align 16 .b8 dynamic[];\n"
         ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n"
         ".reg .pred %p<9>; .reg .b32 %r<99>; .reg .f32 %f<99>;"
         ".reg .b64 %rd<99>, %in, %out, %own_in, %own_out; .reg .b32 %t;\n"
         "ld.param.u64 %in, [a];\nld.param.u64 %out, [b];\n"
         "mov.u32 %t, %tid.x;\n"
         "mul.wide.u32 %rd0, %t, 4;\n"
         "add.s64 %own_in, %in, %rd0;\n"
         "add.s64 %own_out, %out, %rd0;\n"
         "mov.u32 %r0, 0;\n" +
         body + "\nret;\n}\n";
}

constexpr uint32_t kUnwritten = 0xdeadbeef;

}  // namespace

Outcome RunBody(const std::string& body, const std::vector<uint32_t>& input,
                size_t num_outputs, Launch launch) {
  absl::StatusOr<Program> program = Program::Load(Module(body));
  if (!program.ok()) return {program.status(), {}};
  // Bulk copies want multiples of 16 bytes.
  std::vector<std::array<uint64_t, 2>> aligned(input.size() / 4 + 1);
  if (!input.empty()) {
    std::memcpy(aligned.data(), input.data(), input.size() * 4);
  }
  Outcome outcome{{}, std::vector<uint32_t>(num_outputs, kUnwritten)};
  GlobalMemory memory;
  memory.Allow(aligned.data(), static_cast<int64_t>(input.size() * 4), false);
  memory.Allow(outcome.words.data(), static_cast<int64_t>(num_outputs * 4),
               true);
  const uint64_t args[] = {reinterpret_cast<uint64_t>(aligned.data()),
                           reinterpret_cast<uint64_t>(outcome.words.data())};
  launch.entry = "k";
  launch.args = args;
  if (launch.overlaps) {
    Launch before = launch;
    before.overlaps = false;
    outcome.status = program->Run(before, memory);
    if (!outcome.status.ok()) return outcome;
    memory.BeginLaunch();
  }
  outcome.status = program->Run(launch, memory);
  return outcome;
}

Launch Threads(uint32_t threads, int64_t shared_bytes) {
  Launch launch;
  launch.block = {threads, 1, 1};
  launch.dynamic_shared_bytes = shared_bytes;
  return launch;
}

}  // namespace kiln::ptx
