#include "jit/compile/nvrtc_library.h"

#include <dlfcn.h>

#include "jit/compile/errors.h"

namespace kiln {
namespace {

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

std::string LastError() {
  const char* const error = dlerror();
  return error == nullptr ? "unknown error" : error;
}

}  // namespace

absl::StatusOr<NvrtcLibrary> LoadNvrtcLibrary(const Toolchain& toolchain) {
  // NVRTC opens its builtins by bare name, which finds them outside the
  // linker's folders only if they are loaded already.
  const std::string& builtins = toolchain.builtins_path;
  if (dlopen(builtins.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
    return NvrtcNotLoaded(builtins, LastError());
  }
  const std::string& path = toolchain.library_path;
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return NvrtcNotLoaded(path, LastError());

  NvrtcLibrary nvrtc;
  const bool complete =
      Find(library, "nvrtcVersion", &nvrtc.version) &&
      Find(library, "nvrtcGetErrorString", &nvrtc.get_error_string) &&
      Find(library, "nvrtcCreateProgram", &nvrtc.create_program) &&
      Find(library, "nvrtcDestroyProgram", &nvrtc.destroy_program) &&
      Find(library, "nvrtcCompileProgram", &nvrtc.compile_program) &&
      Find(library, "nvrtcGetCUBINSize", &nvrtc.get_cubin_size) &&
      Find(library, "nvrtcGetCUBIN", &nvrtc.get_cubin) &&
      Find(library, "nvrtcGetProgramLogSize", &nvrtc.get_program_log_size) &&
      Find(library, "nvrtcGetProgramLog", &nvrtc.get_program_log) &&
      Find(library, "nvrtcGetNumSupportedArchs",
           &nvrtc.get_num_supported_archs) &&
      Find(library, "nvrtcGetSupportedArchs", &nvrtc.get_supported_archs);
  if (!complete) return NvrtcNotLoaded(path, LastError());
  Find(library, "nvrtcSetFlowCallback", &nvrtc.set_flow_callback);
  return nvrtc;
}

}  // namespace kiln
