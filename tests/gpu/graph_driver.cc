#include "tests/gpu/graph_driver.h"

#include <dlfcn.h>

#include <utility>

#include "jit/run/cuda_errors.h"

namespace kiln::gpu {
namespace {

// CU_STREAM_CAPTURE_MODE_GLOBAL: nothing else of the process may do what a
// capture forbids, allocating memory for example.
constexpr int kCaptureGlobal = 0;

template <typename Function>
bool Find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

absl::StatusOr<GraphDriver> GraphDriver::Load() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    return absl::FailedPreconditionError("There is no libcuda.so.1.");
  }
  GraphDriver driver;
  const bool found =
      Find(library, "cuCtxCreate_v2", driver.CtxCreate) &&
      Find(library, "cuCtxDestroy_v2", driver.CtxDestroy) &&
      Find(library, "cuStreamBeginCapture_v2", driver.StreamBeginCapture) &&
      Find(library, "cuStreamEndCapture", driver.StreamEndCapture) &&
      Find(library, "cuGraphInstantiateWithFlags", driver.GraphInstantiate) &&
      Find(library, "cuGraphLaunch", driver.GraphLaunch) &&
      Find(library, "cuGraphExecDestroy", driver.GraphExecDestroy) &&
      Find(library, "cuGraphDestroy", driver.GraphDestroy);
  if (!found) return absl::FailedPreconditionError(dlerror());
  return driver;
}

absl::StatusOr<OwnContext> OwnContext::Create(const GraphDriver& driver,
                                              driver::Device device) {
  driver::Context context = nullptr;
  const absl::Status status =
      CudaStatus(driver.CtxCreate(&context, 0, device), "cuCtxCreate");
  if (!status.ok()) return status;
  return OwnContext(driver, context);
}

OwnContext::OwnContext(OwnContext&& other) noexcept
    : driver_(other.driver_), context_(std::exchange(other.context_, {})) {}

OwnContext::~OwnContext() {
  if (context_ != nullptr) driver_.CtxDestroy(context_);
}

RecordedGraph::~RecordedGraph() {
  if (exec_ != nullptr) driver_.GraphExecDestroy(exec_);
  if (graph_ != nullptr) driver_.GraphDestroy(graph_);
}

absl::Status RecordedGraph::Begin(driver::Stream stream) {
  return CudaStatus(driver_.StreamBeginCapture(stream, kCaptureGlobal),
                    "cuStreamBeginCapture");
}

absl::Status RecordedGraph::End(driver::Stream stream) {
  absl::Status ended = CudaStatus(driver_.StreamEndCapture(stream, &graph_),
                                  "cuStreamEndCapture");
  if (!ended.ok()) return ended;
  return CudaStatus(driver_.GraphInstantiate(&exec_, graph_, 0),
                    "cuGraphInstantiate");
}

absl::Status RecordedGraph::Replay(driver::Stream stream) const {
  return CudaStatus(driver_.GraphLaunch(exec_, stream), "cuGraphLaunch");
}

}  // namespace kiln::gpu
