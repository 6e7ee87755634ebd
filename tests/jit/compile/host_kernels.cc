#include "tests/jit/compile/host_kernels.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "fmt/format.h"
#include "jit/compile/specialize.h"
#include "kernel_sources/kernel_sources.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

using LaunchFunction = void (*)(void* const* args, const uint32_t* grid,
                                uint32_t threads, bool has_barriers);

void Write(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string Replaced(std::string text, std::string_view from,
                     std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// The unit in a namespace of its own, with a launch function for each entry.
std::string HostUnit(const std::string& name, const KernelSpec& spec,
                     std::vector<std::string>* symbols) {
  std::string unit = Replaced(WriteUnit(spec), "#include", "//#include");
  unit = Replaced(unit, "extern \"C\" __global__", "static");
  std::string text = fmt::format("namespace {} {{\n{}\n", name, unit);
  for (const EntrySpec& entry : spec.entries) {
    const std::string symbol = fmt::format("{}_{}", name, entry.symbol);
    text += fmt::format(
        "extern \"C\" void {}(void* const* args, const uint32_t* grid,\n"
        "    uint32_t threads, bool has_barriers) {{\n"
        "  HostLaunch({}, args, grid, threads, has_barriers);\n}}\n",
        symbol, entry.symbol);
    symbols->push_back(symbol);
  }
  return text + "}\n";
}

// Whether threads of a block wait for each other.
bool Meets(const std::string& source_file) {
  constexpr std::string_view kMeeting[] = {
      "reduce.cu",      "row_block.cu",   "row_warp.cu",      "column_block.cu",
      "row_team.cu",    "row_chain.cu",   "pool_columns.cu",  "dense.cu",
      "stem_conv2d.cu", "head_conv2d.cu", "row_warp_chain.cu"};
  return std::find(std::begin(kMeeting), std::end(kMeeting), source_file) !=
         std::end(kMeeting);
}

// `templates`: the .cu files that the units need.
void Build(const fs::path& folder, const std::set<std::string>& templates,
           const std::string& units) {
  std::string source =
      "#include \"host_cuda.h\"\n#include \"dependent_launch.cuh\"\n";
  for (const KernelSource& file : KernelSources()) {
    // `__shared__` is static here, which nothing extern can be.
    Write(folder / file.name,
          Replaced(std::string(file.text), "extern __shared__", "extern"));
  }
  for (const std::string& file : templates) {
    source += fmt::format("#include \"{}\"\n", file);
  }
  const fs::path host = KILN_HOST_SOURCES;
  for (const char* name : {"host_block.h", "host_cuda.h", "storage_types.cuh",
                           "special_functions.cuh", "ptx_bulk.cuh"}) {
    fs::copy_file(host / name, folder / name,
                  fs::copy_options::overwrite_existing);
  }
  Write(folder / "units.cc", source + units);
  const std::string command = fmt::format(
      "{} -std=c++20 -O1 -w -ffp-contract=off -fPIC -shared -pthread "
      "{}/units.cc -o {}/units.so",
      KILN_HOST_COMPILER, folder.string(), folder.string());
  if (std::system(command.c_str()) != 0) {
    std::fprintf(stderr, "failed: %s\n", command.c_str());
    std::abort();
  }
}

}  // namespace

HostKernels::HostKernels(std::vector<Schedule> schedules) {
  std::string units;
  std::set<std::string> templates;
  for (size_t i = 0; i < schedules.size(); ++i) {
    HostProgram program{std::move(schedules[i]), {}, {}};
    for (const Kernel& kernel : program.schedule.kernels) {
      program.specs.push_back(MakeKernelSpec(program.schedule, kernel));
      templates.insert(program.specs.back().source_file);
      const std::string name =
          fmt::format("plan{}_kernel{}", i, program.specs.size());
      units += HostUnit(name, program.specs.back(), &program.symbols);
    }
    programs_.push_back(std::move(program));
  }

  std::string folder = (fs::temp_directory_path() / "kiln-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) std::abort();
  Build(folder, templates, units);
  library_ = dlopen((fs::path(folder) / "units.so").c_str(), RTLD_NOW);
  if (library_ == nullptr) std::abort();
  fs::remove_all(folder);
}

HostKernels::~HostKernels() { dlclose(library_); }

void HostKernels::Run(size_t program, std::span<void* const> slots) const {
  const HostProgram& host = programs_[program];
  std::vector<char> workspace(host.schedule.workspace_bytes, '\xff');
  for (const ZeroRange& zero : host.schedule.zero) {
    std::fill_n(workspace.begin() + zero.offset_bytes, zero.size_bytes, '\0');
  }
  size_t symbol = 0;
  for (const KernelSpec& spec : host.specs) {
    std::vector<void*> tensors;
    for (const KernelTensor& tensor : spec.tensors) {
      tensors.push_back(tensor.place.slot >= 0
                            ? slots[tensor.place.slot]
                            : workspace.data() + tensor.place.offset_bytes);
    }
    std::vector<void*> args;
    for (void*& tensor : tensors) args.push_back(static_cast<void*>(&tensor));
    for (const EntrySpec& entry : spec.entries) {
      const auto launch = reinterpret_cast<LaunchFunction>(
          dlsym(library_, host.symbols[symbol++].c_str()));
      const bool has_barriers = Meets(spec.source_file);
      std::vector<std::array<uint32_t, 3>> grids = entry.earlier_grids;
      grids.push_back(entry.grid);
      for (const std::array<uint32_t, 3>& grid : grids) {
        launch(args.data(), grid.data(), static_cast<uint32_t>(entry.threads),
               has_barriers);
      }
    }
  }
}

}  // namespace kiln
