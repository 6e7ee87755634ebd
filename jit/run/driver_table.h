#ifndef KILN_JIT_RUN_DRIVER_TABLE_H_
#define KILN_JIT_RUN_DRIVER_TABLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "jit/run/driver_api.h"

namespace kiln {

// The driver's entry points, each named after the function that it calls,
// without the prefix `cu`. A value; copies share the library, which stays
// loaded for the life of the process because the driver starts threads of its
// own. Handles keep a pointer to the table: it must outlive them.
struct DriverTable {
  // Opens the driver at `path`, a file or a soname, and calls cuInit.
  //
  // Errors: FAILED_PRECONDITION if there is no driver, it is older than CUDA
  // 12.4 (naming the missing function), or it finds no device.
  static absl::StatusOr<DriverTable> Load(
      const std::string& path = "libcuda.so.1");

  driver::Result (*Init)(unsigned flags);
  driver::Result (*DriverGetVersion)(int* version);
  driver::Result (*DeviceGetCount)(int* count);
  driver::Result (*DeviceGet)(driver::Device*, int ordinal);
  driver::Result (*DeviceGetName)(char* name, int size, driver::Device);
  driver::Result (*DeviceGetUuid)(driver::Uuid*, driver::Device);
  driver::Result (*DeviceTotalMem)(size_t* bytes, driver::Device);
  driver::Result (*DeviceGetAttribute)(int*, driver::DeviceAttribute,
                                       driver::Device);
  driver::Result (*DevicePrimaryCtxRetain)(driver::Context*, driver::Device);
  driver::Result (*DevicePrimaryCtxRelease)(driver::Device);
  driver::Result (*CtxPushCurrent)(driver::Context);
  driver::Result (*CtxPopCurrent)(driver::Context*);
  driver::Result (*CtxSynchronize)();

  driver::Result (*LibraryLoadData)(driver::Library*, const void* code,
                                    void* jit_options, void** jit_values,
                                    unsigned jit_count, void* library_options,
                                    void** library_values,
                                    unsigned library_count);
  driver::Result (*LibraryUnload)(driver::Library);
  driver::Result (*LibraryGetKernel)(driver::Kernel*, driver::Library,
                                     const char* name);
  driver::Result (*KernelGetFunction)(driver::Function*, driver::Kernel);
  driver::Result (*KernelGetAttribute)(int*, driver::FunctionAttribute,
                                       driver::Kernel, driver::Device);
  driver::Result (*KernelSetAttribute)(driver::FunctionAttribute, int,
                                       driver::Kernel, driver::Device);
  driver::Result (*KernelGetParamInfo)(driver::Kernel, size_t index,
                                       size_t* offset, size_t* size);
  driver::Result (*OccupancyMaxActiveBlocksPerMultiprocessor)(
      int* blocks, driver::Function, int block_size, size_t shared_bytes);
  driver::Result (*OccupancyMaxActiveClusters)(int* clusters, driver::Function,
                                               const driver::LaunchConfig*);
  driver::Result (*LaunchKernelEx)(const driver::LaunchConfig*,
                                   driver::Function, void** params,
                                   void** extra);
  driver::Result (*TensorMapEncodeTiled)(
      driver::TensorMap*, int data_type, uint32_t rank, void* address,
      const uint64_t* global_dim, const uint64_t* global_strides,
      const uint32_t* box_dim, const uint32_t* element_strides, int interleave,
      int swizzle, int l2_promotion, int oob_fill);

  driver::Result (*MemGetInfo)(size_t* free, size_t* total);
  driver::Result (*MemAlloc)(driver::DevicePtr*, size_t bytes);
  driver::Result (*MemFree)(driver::DevicePtr);
  driver::Result (*MemGetAddressRange)(driver::DevicePtr* base, size_t* bytes,
                                       driver::DevicePtr);
  driver::Result (*MemcpyHtoDAsync)(driver::DevicePtr, const void*, size_t,
                                    driver::Stream);
  driver::Result (*MemcpyDtoHAsync)(void*, driver::DevicePtr, size_t,
                                    driver::Stream);
  driver::Result (*MemsetD8Async)(driver::DevicePtr, unsigned char, size_t,
                                  driver::Stream);
  driver::Result (*IpcGetMemHandle)(driver::IpcMemHandle*, driver::DevicePtr);
  driver::Result (*IpcOpenMemHandle)(driver::DevicePtr*, driver::IpcMemHandle,
                                     unsigned flags);
  driver::Result (*IpcCloseMemHandle)(driver::DevicePtr);

  driver::Result (*StreamCreate)(driver::Stream*, unsigned flags);
  driver::Result (*StreamDestroy)(driver::Stream);
  driver::Result (*StreamSynchronize)(driver::Stream);
  driver::Result (*StreamIsCapturing)(driver::Stream, driver::CaptureStatus*);
  driver::Result (*EventCreate)(driver::Event*, unsigned flags);
  driver::Result (*EventDestroy)(driver::Event);
  driver::Result (*EventRecord)(driver::Event, driver::Stream);
  driver::Result (*EventSynchronize)(driver::Event);
  driver::Result (*EventElapsedTime)(float* ms, driver::Event start,
                                     driver::Event end);
};

}  // namespace kiln

#endif  // KILN_JIT_RUN_DRIVER_TABLE_H_
