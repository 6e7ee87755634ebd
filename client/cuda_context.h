#ifndef KILN_CLIENT_CUDA_CONTEXT_H_
#define KILN_CLIENT_CUDA_CONTEXT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "jit/run/cuda_device.h"
#include "jit/run/cuda_handles.h"
#include "jit/run/driver_table.h"

namespace kiln::client {

// A GPU as this process sees it. Retains the primary context, which is that of
// the CUDA runtime too, so addresses of both mean the same. Immutable, so
// thread-safe. Not part of the public interface.
class CudaContext {
 public:
  // The device is found by UUID because CUDA_VISIBLE_DEVICES of daemon and
  // client may number devices differently.
  //
  // Errors: FAILED_PRECONDITION: no driver at `driver_path` (a file or a
  // soname), or the device is hidden from this process.
  static absl::StatusOr<std::shared_ptr<const CudaContext>> Open(
      const std::string& uuid, const std::string& driver_path);

  const DriverTable& driver() const { return *driver_; }
  const CudaDevice& device() const { return device_; }
  driver::Context get() const { return context_.get(); }

 private:
  CudaContext(std::unique_ptr<const DriverTable> driver, CudaDevice device,
              PrimaryContext context);
  const std::unique_ptr<const DriverTable> driver_;
  const CudaDevice device_;
  const PrimaryContext context_;
};

}  // namespace kiln::client

#endif  // KILN_CLIENT_CUDA_CONTEXT_H_
