#include "jit/compile/launch_steps.h"

#include <utility>

namespace kiln {
namespace {

Arg ArgOf(const KernelTensor& tensor) {
  Arg arg;
  if (tensor.place.slot >= 0) {
    arg.slot = tensor.place.slot;
  } else {
    arg.kind = tensor.place.area == Area::kPrepared ? ArgKind::kPrepared
                                                    : ArgKind::kWorkspace;
    arg.offset_bytes = tensor.place.offset_bytes;
  }
  return arg;
}

}  // namespace

void AddLaunchSteps(const KernelSpec& spec, int module,
                    std::vector<Step>* steps) {
  std::vector<Arg> args;
  for (const KernelTensor& tensor : spec.tensors) {
    args.push_back(ArgOf(tensor));
  }
  for (size_t i = 0; i < spec.entries.size(); ++i) {
    Step step;
    step.module = module;
    step.entry = static_cast<int>(i);
    step.block = {static_cast<uint32_t>(spec.entries[i].threads), 1, 1};
    step.cluster = spec.entries[i].cluster;
    step.dynamic_shared_bytes = spec.entries[i].dynamic_shared_bytes;
    step.cooperative = spec.entries[i].cooperative;
    step.args = args;
    const auto add = [&](const std::array<uint32_t, 3>& grid) {
      step.grid = grid;
      step.programmatic_stream_serialization = spec.overlaps && !steps->empty();
      steps->push_back(step);
    };
    for (const auto& grid : spec.entries[i].earlier_grids) add(grid);
    add(spec.entries[i].grid);
  }
}

}  // namespace kiln
