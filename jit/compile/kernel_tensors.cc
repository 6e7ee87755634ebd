#include "jit/compile/kernel_tensors.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

namespace kiln {

std::string StorageTypeName(DataType type) {
  switch (type) {
    case DataType::kF32:
      return "float";
    case DataType::kF16:
      return "kiln::Float16";
    case DataType::kBF16:
      return "kiln::BFloat16";
  }
  return "float";
}

std::string KernelTensors::Read(int value, const std::string& name) {
  const Place& place = schedule_.homes[value].value();
  // Where the kernel also writes it reads through the same pointer.
  for (const Store& store : kernel_.stores) {
    if (store.place == place) return ReadWritten(store);
  }
  return Add({name, StorageTypeName(place.dtype), false, place});
}

std::string KernelTensors::Read(int value) {
  return Read(value, schedule_.lowered.values[value].name);
}

std::string KernelTensors::Write(const Store& store) {
  const std::string name =
      store.place.slot < 0
          ? schedule_.lowered.values[store.value].name
          : fmt::format("output{}",
                        store.place.slot - schedule_.lowered.num_inputs);
  return Add({name, StorageTypeName(store.place.dtype), true, store.place});
}

void KernelTensors::Keep(int value) {
  KernelTensor tensor = {schedule_.lowered.values[value].name, "float", true};
  tensor.is_kept = true;
  Add(std::move(tensor));
}

std::string KernelTensors::ReadWritten(const Store& store) {
  std::string field = Write(store);
  for (KernelTensor& tensor : list_) {
    if (tensor.place == store.place) tensor.is_read = true;
  }
  return field;
}

std::string KernelTensors::Add(KernelTensor tensor) {
  const bool known = std::any_of(
      list_.begin(), list_.end(),
      [&](const KernelTensor& other) { return other.name == tensor.name; });
  if (!known) list_.push_back(tensor);
  return "t." + tensor.name;
}

}  // namespace kiln
