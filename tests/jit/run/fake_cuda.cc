// Longer than 400 lines because every entry point of the driver has to be here.
// libfakecuda.so; contract and log format: fake_driver.h. One global state
// object, because the driver API itself has no other place for it.
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "jit/run/driver_api.h"

// Objects behind the handles, tagged as in <cuda.h>.
struct CUctx_st {};
struct CUstream_st {};
struct CUevent_st {};
struct CUkern_st {
  std::string symbol;
  std::vector<size_t> parameter_bytes;
};
struct CUlib_st {
  std::map<std::string, CUkern_st> kernels;
};

namespace {

using namespace kiln::driver;  // NOLINT: this file implements that API

struct Memory {
  std::unique_ptr<char[]> storage;
  size_t bytes = 0;
};

struct State {
  std::map<std::string, long long> properties = {
      {"sm_count", 132},    {"major", 9},
      {"minor", 0},         {"shared_optin", 232448},
      {"cooperative", 1},   {"cluster", 1},
      {"blocks_per_sm", 1}, {"active_clusters", 66},
      {"capturing", 0},     {"memory", 80LL << 30},
      {"driver", 13000},
  };
  std::map<std::string, int> failures;
  int poison = 0;
  std::string log;
  std::string taken_log;
  std::set<Library> libraries;
  std::set<Stream> streams;
  std::set<Event> events;
  std::map<DevicePtr, Memory> allocations;
  std::map<unsigned char, Memory> foreign;
  std::map<DevicePtr, unsigned char> mappings;
  std::vector<std::string> tensor_maps;
  long long contexts = 0;
  long long allocated_bytes = 0;
};

State& Get() {
  static State state;
  return state;
}

// The injected result of this call, or success.
Result Enter(const char* function) {
  State& state = Get();
  if (state.poison != 0) return static_cast<Result>(state.poison);
  const auto failure = state.failures.find(function);
  if (failure == state.failures.end()) return kSuccess;
  const auto result = static_cast<Result>(failure->second);
  state.failures.erase(failure);
  if (result >= kIllegalAddress && result <= kLaunchFailed &&
      result != kLaunchOutOfResources) {
    state.poison = result;
  }
  return result;
}

int Property(const char* name) {
  return static_cast<int>(Get().properties.at(name));
}

std::string Hex(const void* data, size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += fmt::format("{:02x}", p[i]);
  return text;
}

std::string ArgumentText(const void* data, size_t bytes) {
  if (bytes != sizeof(TensorMap)) return Hex(data, bytes);
  const auto* map = static_cast<const TensorMap*>(data);
  return Get().tensor_maps.at(map->opaque[0]);
}

template <typename T>
std::string List(const T* values, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ",", values[i]);
  }
  return text;
}

// Reads "kernel SYMBOL BYTES..." lines.
std::map<std::string, CUkern_st> ParseCubin(const char* text) {
  std::map<std::string, CUkern_st> kernels;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string keyword;
    CUkern_st kernel;
    words >> keyword >> kernel.symbol;
    for (size_t bytes; words >> bytes;) kernel.parameter_bytes.push_back(bytes);
    if (keyword == "kernel") kernels[kernel.symbol] = kernel;
  }
  return kernels;
}

const Memory* FindMemory(DevicePtr address, DevicePtr* base) {
  State& state = Get();
  for (const auto& [start, memory] : state.allocations) {
    if (address < start || address >= start + memory.bytes) continue;
    *base = start;
    return &memory;
  }
  for (const auto& [start, id] : state.mappings) {
    const Memory& memory = state.foreign.at(id);
    if (address < start || address >= start + memory.bytes) continue;
    *base = start;
    return &memory;
  }
  return nullptr;
}

template <typename Handle>
Result Create(const char* function, std::set<Handle>& all, Handle* handle,
              Handle object) {
  const Result result = Enter(function);
  if (result != kSuccess) {
    delete object;
    return result;
  }
  *handle = object;
  all.insert(object);
  return kSuccess;
}

template <typename Handle>
Result Destroy(std::set<Handle>& all, Handle handle) {
  if (all.erase(handle) == 0) return kInvalidHandle;
  delete handle;
  return kSuccess;
}

}  // namespace

extern "C" {

void kiln_fake_reset() { Get() = State(); }

void kiln_fake_set(const char* property, long long value) {
  Get().properties.at(property) = value;
}

void kiln_fake_fail(const char* function, int result) {
  Get().failures[function] = result;
}

const char* kiln_fake_take_log() {
  State& state = Get();
  state.taken_log = std::move(state.log);
  state.log.clear();
  return state.taken_log.c_str();
}

void kiln_fake_foreign_handle(unsigned char id, long long bytes, char* handle) {
  Memory& memory = Get().foreign[id];
  memory.bytes = static_cast<size_t>(bytes);
  memory.storage = std::make_unique<char[]>(memory.bytes);
  std::memset(handle, id, sizeof(IpcMemHandle));
}

long long kiln_fake_count(const char* kind) {
  const State& state = Get();
  const std::map<std::string, long long> counts = {
      {"libraries", state.libraries.size()},
      {"allocations", state.allocations.size()},
      {"mappings", state.mappings.size()},
      {"streams", state.streams.size()},
      {"events", state.events.size()},
      {"contexts", state.contexts},
  };
  return counts.at(kind);
}

Result cuInit(unsigned) { return kSuccess; }

Result cuDriverGetVersion(int* version) {
  *version = Property("driver");
  return kSuccess;
}

Result cuDeviceGetCount(int* count) {
  *count = 1;
  return Enter("cuDeviceGetCount");
}

Result cuDeviceGet(Device* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? kSuccess : kInvalidDevice;
}

Result cuDeviceGetName(char* name, int size, Device) {
  std::strncpy(name, "Fake device", size);
  return kSuccess;
}

Result cuDeviceGetUuid_v2(Uuid* uuid, Device) {
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<uint8_t>(i);
  return kSuccess;
}

Result cuDeviceTotalMem_v2(size_t* bytes, Device) {
  *bytes = Get().properties.at("memory");
  return kSuccess;
}

Result cuDeviceGetAttribute(int* value, DeviceAttribute attribute, Device) {
  static const std::map<int, const char*> names = {
      {kMultiprocessorCount, "sm_count"},
      {kComputeCapabilityMajor, "major"},
      {kComputeCapabilityMinor, "minor"},
      {kCooperativeLaunch, "cooperative"},
      {kMaxSharedMemoryPerBlockOptin, "shared_optin"},
      {kClusterLaunch, "cluster"},
  };
  *value = Property(names.at(attribute));
  return kSuccess;
}

Result cuDevicePrimaryCtxRetain(Context* context, Device) {
  static CUctx_st the_context;
  const Result result = Enter("cuDevicePrimaryCtxRetain");
  if (result != kSuccess) return result;
  *context = &the_context;
  ++Get().contexts;
  return kSuccess;
}

Result cuDevicePrimaryCtxRelease_v2(Device) {
  --Get().contexts;
  return kSuccess;
}

Result cuCtxPushCurrent_v2(Context) { return Enter("cuCtxPushCurrent"); }
Result cuCtxPopCurrent_v2(Context*) { return kSuccess; }
Result cuCtxSynchronize() { return Enter("cuCtxSynchronize"); }

Result cuLibraryLoadData(Library* library, const void* code, void*, void**,
                         unsigned, void*, void**, unsigned) {
  return Create("cuLibraryLoadData", Get().libraries, library,
                new CUlib_st{ParseCubin(static_cast<const char*>(code))});
}

Result cuLibraryUnload(Library library) {
  return Destroy(Get().libraries, library);
}

Result cuLibraryGetKernel(Kernel* kernel, Library library, const char* name) {
  const auto found = library->kernels.find(name);
  if (found == library->kernels.end()) return kNotFound;
  *kernel = &found->second;
  return Enter("cuLibraryGetKernel");
}

Result cuKernelGetFunction(Function* function, Kernel kernel) {
  *function = reinterpret_cast<Function>(kernel);
  return Enter("cuKernelGetFunction");
}

Result cuKernelGetAttribute(int* value, FunctionAttribute, Kernel, Device) {
  *value = 0;
  return kSuccess;
}

Result cuKernelSetAttribute(FunctionAttribute, int, Kernel, Device) {
  return Enter("cuKernelSetAttribute");
}

Result cuKernelGetParamInfo(Kernel kernel, size_t index, size_t* offset,
                            size_t* size) {
  if (index >= kernel->parameter_bytes.size()) return kInvalidValue;
  *offset = 0;
  *size = kernel->parameter_bytes[index];
  return kSuccess;
}

Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function, int,
                                                   size_t) {
  *blocks = Property("blocks_per_sm");
  return kSuccess;
}

Result cuOccupancyMaxActiveClusters(int* clusters, Function,
                                    const LaunchConfig*) {
  *clusters = Property("active_clusters");
  return kSuccess;
}

Result cuLaunchKernelEx(const LaunchConfig* config, Function function,
                        void** params, void**) {
  const Result result = Enter("cuLaunchKernelEx");
  if (result != kSuccess) return result;
  const auto* kernel = reinterpret_cast<Kernel>(function);
  std::string attributes;
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const LaunchAttribute& attribute = config->attributes[i];
    if (attribute.id == kCooperative) attributes += " cooperative";
    if (attribute.id == kProgrammaticStreamSerialization) {
      attributes += " overlapping";
    }
    if (attribute.id == kClusterDimension) {
      const auto& cluster = attribute.value.cluster;
      attributes +=
          fmt::format(" cluster {},{},{}", cluster.x, cluster.y, cluster.z);
    }
  }
  std::string arguments;
  for (size_t i = 0; i < kernel->parameter_bytes.size(); ++i) {
    arguments +=
        fmt::format(" {}", ArgumentText(params[i], kernel->parameter_bytes[i]));
  }
  Get().log +=
      fmt::format("launch {} grid {},{},{} block {},{},{}{} shared {} args{}\n",
                  kernel->symbol, config->grid_x, config->grid_y,
                  config->grid_z, config->block_x, config->block_y,
                  config->block_z, attributes, config->shared_bytes, arguments);
  return kSuccess;
}

Result cuTensorMapEncodeTiled(TensorMap* map, int type, uint32_t rank,
                              void* address, const uint64_t* dim,
                              const uint64_t* strides, const uint32_t* box,
                              const uint32_t* elements, int interleave,
                              int swizzle, int promotion, int fill) {
  State& state = Get();
  map->opaque[0] = state.tensor_maps.size();
  state.tensor_maps.push_back(fmt::format(
      "map(type={};address={};dim={};strides={};box={};elements={};modes={},{},"
      "{},{})",
      type, reinterpret_cast<uintptr_t>(address), List(dim, rank),
      List(strides, rank - 1), List(box, rank), List(elements, rank),
      interleave, swizzle, promotion, fill));
  return Enter("cuTensorMapEncodeTiled");
}

Result cuMemGetInfo_v2(size_t* free, size_t* total) {
  *total = Get().properties.at("memory");
  *free = *total - Get().allocated_bytes;
  return kSuccess;
}

Result cuMemAlloc_v2(DevicePtr* address, size_t bytes) {
  const Result result = Enter("cuMemAlloc");
  if (result != kSuccess) return result;
  State& state = Get();
  const auto limit = static_cast<size_t>(state.properties.at("memory"));
  if (bytes > limit - state.allocated_bytes) return kOutOfMemory;
  // Untouched pages of a large allocation cost nothing.
  std::unique_ptr<char[]> storage(new char[bytes + 256]);
  *address = (reinterpret_cast<DevicePtr>(storage.get()) + 255) / 256 * 256;
  state.allocated_bytes += static_cast<long long>(bytes);
  state.allocations[*address] = Memory{std::move(storage), bytes};
  return kSuccess;
}

Result cuMemFree_v2(DevicePtr address) {
  State& state = Get();
  const auto found = state.allocations.find(address);
  if (found == state.allocations.end()) return kInvalidValue;
  state.allocated_bytes -= static_cast<long long>(found->second.bytes);
  state.allocations.erase(found);
  return kSuccess;
}

Result cuMemGetAddressRange_v2(DevicePtr* base, size_t* bytes,
                               DevicePtr address) {
  const Memory* memory = FindMemory(address, base);
  if (memory == nullptr) return kNotFound;
  *bytes = memory->bytes;
  return Enter("cuMemGetAddressRange");
}

Result cuMemcpyHtoDAsync_v2(DevicePtr to, const void* from, size_t bytes,
                            Stream) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return Enter("cuMemcpyHtoDAsync");
}

Result cuMemcpyDtoHAsync_v2(void* to, DevicePtr from, size_t bytes, Stream) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return Enter("cuMemcpyDtoHAsync");
}

Result cuMemsetD8Async(DevicePtr address, unsigned char, size_t bytes, Stream) {
  const Result result = Enter("cuMemsetD8Async");
  if (result != kSuccess) return result;
  Get().log += fmt::format("memset {} {}\n", address, bytes);
  return kSuccess;
}

Result cuIpcGetMemHandle(IpcMemHandle* handle, DevicePtr address) {
  std::memcpy(handle, &address, sizeof(address));
  return Enter("cuIpcGetMemHandle");
}

Result cuIpcOpenMemHandle_v2(DevicePtr* address, IpcMemHandle handle,
                             unsigned) {
  const Result result = Enter("cuIpcOpenMemHandle");
  if (result != kSuccess) return result;
  State& state = Get();
  const auto found = state.foreign.find(handle.reserved[0]);
  if (found == state.foreign.end()) return kInvalidValue;
  // Far from host memory and 2 MiB aligned, as the driver's mappings are.
  *address = DevicePtr{0x700000000000} + (DevicePtr{found->first} << 32);
  if (!state.mappings.emplace(*address, found->first).second) {
    return kInvalidValue;
  }
  return kSuccess;
}

Result cuIpcCloseMemHandle(DevicePtr address) {
  return Get().mappings.erase(address) == 1 ? kSuccess : kInvalidValue;
}

Result cuStreamCreate(Stream* stream, unsigned) {
  return Create("cuStreamCreate", Get().streams, stream, new CUstream_st);
}

Result cuStreamDestroy_v2(Stream stream) {
  return Destroy(Get().streams, stream);
}

Result cuStreamSynchronize(Stream) { return Enter("cuStreamSynchronize"); }

Result cuStreamIsCapturing(Stream, CaptureStatus* status) {
  *status = static_cast<CaptureStatus>(Property("capturing"));
  return Enter("cuStreamIsCapturing");
}

Result cuEventCreate(Event* event, unsigned) {
  return Create("cuEventCreate", Get().events, event, new CUevent_st);
}

Result cuEventDestroy_v2(Event event) { return Destroy(Get().events, event); }
Result cuEventRecord(Event, Stream) { return Enter("cuEventRecord"); }
Result cuEventSynchronize(Event) { return Enter("cuEventSynchronize"); }

Result cuEventElapsedTime(float* ms, Event, Event) {
  *ms = 0.25F;
  return Enter("cuEventElapsedTime");
}

}  // extern "C"
