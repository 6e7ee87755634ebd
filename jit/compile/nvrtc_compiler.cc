#include "jit/compile/nvrtc_compiler.h"

#include <utility>

#include "fmt/format.h"
#include "jit/compile/errors.h"
#include "jit/compile/nvrtc_library.h"

namespace kiln {

struct NvrtcCompiler::State {
  NvrtcLibrary nvrtc;
  std::function<bool()> cancelled;
};

namespace {

// Fixed, so that cubins do not depend on where or by whom they are made.
constexpr char kProgramName[] = "kiln.cu";

class Program {
 public:
  explicit Program(const NvrtcLibrary& nvrtc) : nvrtc_(nvrtc) {}
  ~Program() {
    if (handle_ != nullptr) nvrtc_.destroy_program(&handle_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  int Create(const std::string& source,
             const std::vector<NvrtcCompiler::Header>& headers) {
    std::vector<const char*> texts;
    std::vector<const char*> names;
    for (const NvrtcCompiler::Header& header : headers) {
      texts.push_back(header.text.c_str());
      names.push_back(header.name.c_str());
    }
    return nvrtc_.create_program(&handle_, source.c_str(), kProgramName,
                                 static_cast<int>(headers.size()), texts.data(),
                                 names.data());
  }

  int Compile(const std::string& arch) {
    const std::string arch_option = "--gpu-architecture=" + arch;
    const char* const options[] = {
        arch_option.c_str(), "--std=c++17",
        "--minimal",   // none of the built-in texture and C++ library code
        "--no-cache",  // the driver's cache would hide what we measure
        "-Xptxas=-v",  // registers and spills, in the log
    };
    return nvrtc_.compile_program(handle_, std::size(options), options);
  }

  std::string Log() const {
    size_t size = 0;
    if (nvrtc_.get_program_log_size(handle_, &size) != 0 || size == 0) {
      return "";
    }
    std::string log(size, '\0');
    if (nvrtc_.get_program_log(handle_, log.data()) != 0) return "";
    log.resize(size - 1);  // without the terminator
    return log;
  }

  int Cubin(std::string* cubin) const {
    size_t size = 0;
    if (const int result = nvrtc_.get_cubin_size(handle_, &size); result != 0) {
      return result;
    }
    cubin->resize(size);
    return nvrtc_.get_cubin(handle_, cubin->data());
  }

  NvrtcLibrary::Program handle() const { return handle_; }

 private:
  const NvrtcLibrary& nvrtc_;
  NvrtcLibrary::Program handle_ = nullptr;
};

int AskCancelled(void* payload, void*) {
  return (*static_cast<std::function<bool()>*>(payload))() ? 1 : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NvrtcCompiler>> NvrtcCompiler::Load(
    const Toolchain& toolchain) {
  absl::StatusOr<NvrtcLibrary> nvrtc = LoadNvrtcLibrary(toolchain);
  if (!nvrtc.ok()) return nvrtc.status();
  auto state = std::make_unique<State>();
  state->nvrtc = *nvrtc;
  return std::unique_ptr<NvrtcCompiler>(new NvrtcCompiler(std::move(state)));
}

NvrtcCompiler::NvrtcCompiler(std::unique_ptr<State> state)
    : state_(std::move(state)) {}

NvrtcCompiler::~NvrtcCompiler() = default;

absl::StatusOr<NvrtcCompiler::Output> NvrtcCompiler::Compile(
    const std::string& source, const std::vector<Header>& headers,
    const std::string& arch) {
  const NvrtcLibrary& nvrtc = state_->nvrtc;
  Program program(nvrtc);
  int result = program.Create(source, headers);
  Output output;
  if (result == 0) {
    if (state_->cancelled && nvrtc.set_flow_callback != nullptr) {
      nvrtc.set_flow_callback(program.handle(), AskCancelled,
                              &state_->cancelled);
    }
    result = program.Compile(arch);
    output.log = program.Log();
  }
  if (result == 0) result = program.Cubin(&output.cubin);
  if (result != 0) {
    return NvrtcError(result, nvrtc.get_error_string(result),
                      {arch, architectures()}, source, output.log);
  }
  return output;
}

void NvrtcCompiler::set_cancelled(std::function<bool()> cancelled) {
  state_->cancelled = std::move(cancelled);
}

std::string NvrtcCompiler::version() const {
  int major = 0;
  int minor = 0;
  state_->nvrtc.version(&major, &minor);
  return fmt::format("{}.{}", major, minor);
}

std::vector<int> NvrtcCompiler::architectures() const {
  int count = 0;
  if (state_->nvrtc.get_num_supported_archs(&count) != 0 || count <= 0) {
    return {};
  }
  std::vector<int> architectures(count);
  if (state_->nvrtc.get_supported_archs(architectures.data()) != 0) return {};
  return architectures;
}

}  // namespace kiln
