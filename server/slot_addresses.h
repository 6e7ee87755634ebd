#ifndef KILN_SERVER_SLOT_ADDRESSES_H_
#define KILN_SERVER_SLOT_ADDRESSES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "jit/artifact/artifact.h"
#include "jit/run/driver_api.h"
#include "server/cuda_memory_table.h"
#include "server/execution_backend.h"

namespace kiln {

// The device address of every slot, from its binding. Checks again what the
// front has checked, so that nothing depends on that; overlaps are left to
// LoadedArtifact::CheckAddresses.
//
// Errors: FAILED_PRECONDITION for unknown memory; INVALID_ARGUMENT for a wrong
// number of bindings, a tensor that does not lie inside its memory, and a
// misaligned address.
absl::StatusOr<std::vector<driver::DevicePtr>> SlotAddresses(
    const CudaMemoryTable& memory, const std::vector<Slot>& slots,
    const std::vector<SlotBinding>& bindings);

}  // namespace kiln

#endif  // KILN_SERVER_SLOT_ADDRESSES_H_
