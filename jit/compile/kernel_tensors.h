#ifndef KILN_JIT_COMPILE_KERNEL_TENSORS_H_
#define KILN_JIT_COMPILE_KERNEL_TENSORS_H_

#include <string>
#include <vector>

#include "jit/compile/schedule.h"

namespace kiln {

// "float", "kiln::Float16", "kiln::BFloat16".
std::string StorageTypeName(DataType type);

// A pointer parameter of a kernel, and a field of its Spec::Tensors.
struct KernelTensor {
  std::string name;  // "input", "v3", "output0"
  std::string type;  // of an element: "float", "kiln::Float16"
  bool is_output = false;
  Place place;
  bool is_read = false;  // of an output: elements are loaded, then replaced
  bool is_kept = false;  // of an output: by threads, for their template; not a
                         // parameter
};

// The tensors of one kernel, each listed once, in order of first use.
class KernelTensors {
 public:
  KernelTensors(const Schedule& schedule, const Kernel& kernel)
      : schedule_(schedule), kernel_(kernel) {}

  // The field that a value is read from: named `name`, or as it is where the
  // kernel writes it. The value must have a home.
  std::string Read(int value, const std::string& name);
  std::string Read(int value);  // named like the value

  // The field that `store` goes to.
  std::string Write(const Store& store);

  // What is written to `value` is kept.
  void Keep(int value);

  // A field of any type in the workspace.
  std::string Add(KernelTensor tensor);

  const std::vector<KernelTensor>& list() const { return list_; }

 private:
  std::string ReadWritten(const Store& store);

  const Schedule& schedule_;
  const Kernel& kernel_;
  std::vector<KernelTensor> list_;
};

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_KERNEL_TENSORS_H_
