#ifndef KILN_TESTS_GPU_GRAPH_DRIVER_H_
#define KILN_TESTS_GPU_GRAPH_DRIVER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "jit/run/driver_api.h"

struct CUgraph_st;
struct CUgraphExec_st;

namespace kiln::gpu {

// What a program beside Kiln does with the driver: contexts and CUDA graphs of
// its own. A value; each entry is named as in the CUDA Driver API reference.
struct GraphDriver {
  using Graph = CUgraph_st*;
  using GraphExec = CUgraphExec_st*;

  // Errors: FAILED_PRECONDITION: no driver, or one without these functions.
  static absl::StatusOr<GraphDriver> Load();

  driver::Result (*CtxCreate)(driver::Context*, unsigned flags, driver::Device);
  driver::Result (*CtxDestroy)(driver::Context);
  driver::Result (*StreamBeginCapture)(driver::Stream, int mode);
  driver::Result (*StreamEndCapture)(driver::Stream, Graph*);
  driver::Result (*GraphInstantiate)(GraphExec*, Graph,
                                     unsigned long long flags);
  driver::Result (*GraphLaunch)(GraphExec, driver::Stream);
  driver::Result (*GraphExecDestroy)(GraphExec);
  driver::Result (*GraphDestroy)(Graph);
};

// A context beside the primary one, current on the thread that made it.
class OwnContext {
 public:
  static absl::StatusOr<OwnContext> Create(const GraphDriver& driver,
                                           driver::Device device);
  OwnContext(OwnContext&& other) noexcept;
  OwnContext& operator=(OwnContext&&) = delete;
  ~OwnContext();

 private:
  OwnContext(const GraphDriver& driver, driver::Context context)
      : driver_(driver), context_(context) {}
  const GraphDriver driver_;
  driver::Context context_;
};

// Work recorded on a stream between Begin and End.
class RecordedGraph {
 public:
  explicit RecordedGraph(const GraphDriver& driver) : driver_(driver) {}
  RecordedGraph(const RecordedGraph&) = delete;
  RecordedGraph& operator=(const RecordedGraph&) = delete;
  ~RecordedGraph();

  absl::Status Begin(driver::Stream stream);
  absl::Status End(driver::Stream stream);
  absl::Status Replay(driver::Stream stream) const;

 private:
  const GraphDriver driver_;
  GraphDriver::Graph graph_ = nullptr;
  GraphDriver::GraphExec exec_ = nullptr;
};

}  // namespace kiln::gpu

#endif  // KILN_TESTS_GPU_GRAPH_DRIVER_H_
