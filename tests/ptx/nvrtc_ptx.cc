#include "tests/ptx/nvrtc_ptx.h"

#include <dlfcn.h>

#include <array>
#include <iterator>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "jit/compile/nvrtc_library.h"
#include "kernel_sources/kernel_sources.h"

namespace kiln::ptx {
namespace {

// What jit/compile has no use for.
struct PtxFunctions {
  int (*get_size)(NvrtcLibrary::Program program, size_t* size) = nullptr;
  int (*get)(NvrtcLibrary::Program program, char* ptx) = nullptr;
};

absl::StatusOr<PtxFunctions> LoadPtxFunctions(const Toolchain& toolchain) {
  void* const library =
      dlopen(toolchain.library_path.c_str(), RTLD_NOW | RTLD_LOCAL);
  PtxFunctions functions;
  if (library != nullptr) {
    functions.get_size = reinterpret_cast<decltype(functions.get_size)>(
        dlsym(library, "nvrtcGetPTXSize"));
    functions.get = reinterpret_cast<decltype(functions.get)>(
        dlsym(library, "nvrtcGetPTX"));
  }
  if (functions.get_size == nullptr || functions.get == nullptr) {
    return absl::FailedPreconditionError("NVRTC gives no PTX.");
  }
  return functions;
}

std::string LogOf(const NvrtcLibrary& nvrtc, NvrtcLibrary::Program program) {
  size_t size = 0;
  if (nvrtc.get_program_log_size(program, &size) != 0) return "";
  std::string log(size, '\0');
  nvrtc.get_program_log(program, log.data());
  return log;
}

int Create(const NvrtcLibrary& nvrtc, const std::string& source,
           NvrtcLibrary::Program* program) {
  std::vector<std::string> names;
  std::vector<std::string> texts;
  for (const KernelSource& file : KernelSources()) {
    names.emplace_back(file.name);
    texts.emplace_back(file.text);
  }
  std::vector<const char*> name_pointers;
  std::vector<const char*> text_pointers;
  for (size_t i = 0; i < names.size(); ++i) {
    name_pointers.push_back(names[i].c_str());
    text_pointers.push_back(texts[i].c_str());
  }
  return nvrtc.create_program(program, source.c_str(), "kiln.cu",
                              static_cast<int>(names.size()),
                              text_pointers.data(), name_pointers.data());
}

absl::StatusOr<std::string> CompileUnit(const std::string& source,
                                        const std::string& arch,
                                        const Toolchain& toolchain) {
  const absl::StatusOr<NvrtcLibrary> nvrtc = LoadNvrtcLibrary(toolchain);
  if (!nvrtc.ok()) return nvrtc.status();
  const absl::StatusOr<PtxFunctions> functions = LoadPtxFunctions(toolchain);
  if (!functions.ok()) return functions.status();

  NvrtcLibrary::Program program = nullptr;
  int result = Create(*nvrtc, source, &program);
  if (result != 0) return absl::InternalError("NVRTC takes no program.");
  const std::string arch_option =
      "--gpu-architecture=compute_" + arch.substr(arch.find('_') + 1);
  const char* const options[] = {arch_option.c_str(), "--std=c++17",
                                 "--minimal", "--no-cache"};
  result = nvrtc->compile_program(program, std::size(options), options);
  size_t size = 0;
  if (result == 0) result = functions->get_size(program, &size);
  std::string text(size, '\0');
  if (result == 0) result = functions->get(program, text.data());
  const std::string log = result == 0 ? "" : LogOf(*nvrtc, program);
  nvrtc->destroy_program(&program);
  if (result != 0) {
    return absl::InternalError(fmt::format(
        "NVRTC fails ({}): {}", nvrtc->get_error_string(result), log));
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> PtxOf(const std::string& source,
                                  const std::string& arch,
                                  const Toolchain& toolchain) {
  // Tests run the same unit in several ways, and compiling takes longer.
  using Key = std::array<std::string, 3>;
  static auto& compiled = *new std::map<Key, std::string>;
  const Key key = {toolchain.library_path, arch, source};
  const auto found = compiled.find(key);
  if (found != compiled.end()) return found->second;
  absl::StatusOr<std::string> text = CompileUnit(source, arch, toolchain);
  if (text.ok()) compiled.emplace(key, *text);
  return text;
}

}  // namespace kiln::ptx
