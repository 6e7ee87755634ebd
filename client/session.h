#ifndef KILN_CLIENT_SESSION_H_
#define KILN_CLIENT_SESSION_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "client/buffer.h"
#include "client/compiled_plan.h"

namespace kiln {

namespace client {
class SessionState;
}

// What the daemon tells an open session.
struct SessionEvent {
  enum class Kind {
    kExecutorRestarted,  // buffers of `device` are gone: register them again
    kDraining,           // the daemon stops within grace_ms
    kEnded,              // the stream is closed; nothing follows
  };
  Kind kind = Kind::kEnded;
  std::string device;
  std::string reason;
  int64_t grace_ms = 0;
};

// Which memory stands for which input and output of a plan, each named by its
// position in the plan or by its name. Holds pointers: the buffers outlive it.
class Bindings {
 public:
  // `offset_bytes` is where the tensor starts in the buffer.
  Bindings& Input(int index, const SharedBuffer& buffer,
                  int64_t offset_bytes = 0);
  Bindings& Input(std::string_view name, const SharedBuffer& buffer,
                  int64_t offset_bytes = 0);
  Bindings& Output(int index, const SharedBuffer& buffer,
                   int64_t offset_bytes = 0);
  // By the name of the op, or of the input, that the output returns.
  Bindings& Output(std::string_view name, const SharedBuffer& buffer,
                   int64_t offset_bytes = 0);

 private:
  friend class Session;
  struct Entry {
    bool is_output;
    std::variant<int, std::string> which;
    const SharedBuffer* buffer;
    int64_t offset_bytes;
  };
  std::vector<Entry> entries_;
};

struct ExecuteOptions {
  std::string device = "cpu";  // or "cuda:0"
  // Work on parameters alone is done again only when this number or a
  // parameter's address changes. 0: before every launch.
  uint64_t parameter_version = 0;
  std::chrono::milliseconds timeout{0};  // 0: ConnectOptions::call_timeout
};

struct ExecuteTiming {
  int64_t execute_us = 0;  // on the device
  int64_t total_us = 0;    // in the daemon
};

// Memory that a client shares with the daemon, and calls on it. Opened by
// Client::OpenSession; ends when the object and its buffers are destroyed, or
// when the process dies, however it dies. Thread-safe; movable.
class Session {
 public:
  // Memory of `size_bytes` that this process and the executor of `device` both
  // map. For "cpu" filled with zeros; for "cuda:0" GPU memory with undefined
  // contents, taken in steps of 2 MiB.
  //
  // Errors: RESOURCE_EXHAUSTED: no memory, or too many buffers;
  // INVALID_ARGUMENT, FAILED_PRECONDITION: the session has ended, the daemon
  // has no such device, or this process cannot use it.
  absl::StatusOr<SharedBuffer> CreateBuffer(int64_t size_bytes,
                                            const std::string& device = "cpu");

  // Shares GPU memory of this process, of cuMemAlloc or cudaMalloc, that the
  // caller frees after the buffer. The daemon can reach the whole allocation
  // around `address`, and small allocations near it. Work that writes the
  // memory must be complete before Execute.
  //
  // Errors: as CreateBuffer; INVALID_ARGUMENT: memory that CUDA IPC cannot
  // share (managed, host, virtual memory management, cudaMallocAsync).
  absl::StatusOr<SharedBuffer> RegisterCuda(
      void* address, int64_t size_bytes, const std::string& device = "cuda:0");

  // Runs `plan` on `bindings`, which name every input that the result depends
  // on and every output; returns when the outputs are complete.
  //
  // Errors: INVALID_ARGUMENT: a tensor unbound or bound twice, a range outside
  // its buffer, outputs that overlap; NOT_FOUND: compile the plan again;
  // ABORTED: the executor died: create the buffers again, then retry.
  absl::StatusOr<ExecuteTiming> Execute(const CompiledPlan& plan,
                                        const Bindings& bindings,
                                        const ExecuteOptions& options = {});

  // 32 hexadecimal digits; as in the daemon's log.
  const std::string& id() const;

 private:
  friend class Client;
  explicit Session(std::shared_ptr<client::SessionState> state);
  std::shared_ptr<client::SessionState> state_;
};

}  // namespace kiln

#endif  // KILN_CLIENT_SESSION_H_
