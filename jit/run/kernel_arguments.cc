#include "jit/run/kernel_arguments.h"

#include "jit/run/cuda_errors.h"

namespace kiln {
namespace {

driver::DevicePtr AddressOf(const Arg& arg,
                            const KernelArguments::Bases& bases) {
  switch (arg.kind) {
    case ArgKind::kWorkspace:
      return bases.workspace + arg.offset_bytes;
    case ArgKind::kPrepared:
      return bases.prepared + arg.offset_bytes;
    default:
      return bases.slots[arg.slot] + arg.offset_bytes;
  }
}

absl::Status EncodeTensorMap(const DriverTable& driver,
                             const TensorMapSpec& spec,
                             driver::DevicePtr address,
                             driver::TensorMap& map) {
  return CudaStatus(
      driver.TensorMapEncodeTiled(
          &map, static_cast<int>(spec.data_type),
          static_cast<uint32_t>(spec.global_dim.size()),
          reinterpret_cast<void*>(address), spec.global_dim.data(),
          spec.global_strides.data(), spec.box_dim.data(),
          spec.element_strides.data(), static_cast<int>(spec.interleave),
          static_cast<int>(spec.swizzle), static_cast<int>(spec.l2_promotion),
          static_cast<int>(spec.oob_fill)),
      "cuTensorMapEncodeTiled");
}

}  // namespace

absl::Status KernelArguments::Fill(const DriverTable& driver, const Step& step,
                                   const Bases& bases) {
  const size_t count = step.args.size();
  // Pointers go into these, so they must not grow below.
  addresses_.resize(count);
  maps_.clear();
  maps_.reserve(count);
  pointers_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const Arg& arg = step.args[i];
    if (arg.kind == ArgKind::kConstant) {
      // The driver copies parameters and never writes through the pointer.
      pointers_[i] = const_cast<char*>(arg.bytes.data());
      continue;
    }
    addresses_[i] = AddressOf(arg, bases);
    pointers_[i] = &addresses_[i];
    if (arg.kind == ArgKind::kTensorMap) {
      pointers_[i] = &maps_.emplace_back();
      absl::Status status =
          EncodeTensorMap(driver, arg.tensor_map, addresses_[i], maps_.back());
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace kiln
