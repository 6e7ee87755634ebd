#ifndef KILN_JIT_COMPILE_NVRTC_COMPILER_H_
#define KILN_JIT_COMPILE_NVRTC_COMPILER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/compile/toolchain.h"

namespace kiln {

// NVRTC, opened with dlopen. A resource: the library stays loaded for the life
// of the process. Use it from one thread at a time, in a process that may be
// killed: NVRTC can hang or abort on sources that make its optimiser work hard.
class NvrtcCompiler {
 public:
  // Errors: FAILED_PRECONDITION if the library or one of its functions is
  // missing.
  static absl::StatusOr<std::unique_ptr<NvrtcCompiler>> Load(
      const Toolchain& toolchain);
  ~NvrtcCompiler();
  NvrtcCompiler(const NvrtcCompiler&) = delete;
  NvrtcCompiler& operator=(const NvrtcCompiler&) = delete;

  struct Header {
    std::string name;  // as the source includes it
    std::string text;
  };

  struct Output {
    std::string cubin;
    std::string log;
  };

  // Compiles one translation unit for `arch` ("sm_90a"). Reads no file: all
  // includes come from `headers`.
  //
  // Errors: UNIMPLEMENTED: NVRTC does not know `arch`; INTERNAL: it rejects
  // the source (log and source in the detail); DEADLINE_EXCEEDED: `cancelled`
  // said so; RESOURCE_EXHAUSTED: out of memory.
  absl::StatusOr<Output> Compile(const std::string& source,
                                 const std::vector<Header>& headers,
                                 const std::string& arch);

  // Asked by NVRTC now and then during Compile; return true to give up. Only
  // the polite half of a deadline: NVRTC does not ask in its front end.
  void set_cancelled(std::function<bool()> cancelled);

  std::string version() const;  // "13.0"

  // What Compile takes: 75 for "sm_75", ascending.
  std::vector<int> architectures() const;

 private:
  struct State;
  explicit NvrtcCompiler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_NVRTC_COMPILER_H_
