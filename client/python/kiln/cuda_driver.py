"""The CUDA driver through cuda-bindings, in the current context (PyTorch's).

Loaded code stays on the device for the life of the process.
"""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any, Sequence

from kiln.errors import KilnError
from kiln.launch import Device

_IPC_HANDLE_BYTES = 64
_FIRST_WITH_PROGRAMMATIC_GRAPHS = 12030  # CUDA 12.3


def _cu() -> Any:
    from cuda.bindings import driver

    return driver


def checked(result: tuple[Any, ...]) -> Any:
    """The values of a driver call; raises KilnError for its error."""
    error, *values = result
    if int(error) != 0:
        code = ("RESOURCE_EXHAUSTED" if int(error) == 2 else
                "ABORTED" if 700 <= int(error) < 720 else "INTERNAL")
        raise KilnError(code, f"The CUDA driver answers {error.name}.")
    if not values:
        return None
    return values[0] if len(values) == 1 else tuple(values)


@dataclasses.dataclass(frozen=True)
class ExportedMemory:
    handle: bytes  # of the allocation; a secret
    offset_bytes: int  # of the address in it
    size_bytes: int  # of the allocation


def export_memory(address: int) -> ExportedMemory:
    """The allocation that holds `address`, for another process."""
    cu = _cu()
    base, size = checked(cu.cuMemGetAddressRange(address))
    handle = checked(cu.cuIpcGetMemHandle(base))
    raw = ctypes.string_at(handle.getPtr(), _IPC_HANDLE_BYTES)
    return ExportedMemory(raw, address - int(base), int(size))


def device_uuid(ordinal: int) -> str:
    """"GPU-" and 32 hex digits in five groups."""
    cu = _cu()
    uuid = checked(cu.cuDeviceGetUuid(checked(cu.cuDeviceGet(ordinal))))
    text = ctypes.string_at(uuid.getPtr(), 16).hex()
    groups = (text[:8], text[8:12], text[12:16], text[16:20], text[20:])
    return "GPU-" + "-".join(groups)


class CudaDriver:
    """kiln.launch.Driver on device `ordinal`."""

    def __init__(self, ordinal: int = 0):
        self._cu = cu = _cu()
        checked(cu.cuInit(0))
        self._handle = checked(cu.cuDeviceGet(ordinal))
        names = cu.CUdevice_attribute
        major = self._attribute(
            names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        minor = self._attribute(
            names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
        sms = self._attribute(names.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        suffix = "a" if (major, minor) == (9, 0) else ""
        self.device = Device(
            f"sm_{major}{minor}{suffix}/{sms}", sms,
            self._attribute(
                names.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
            bool(self._attribute(names.CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)),
            bool(self._attribute(names.CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH)),
            major >= 9 and checked(cu.cuDriverGetVersion()) >=
            _FIRST_WITH_PROGRAMMATIC_GRAPHS)

    def _attribute(self, name: Any) -> int:
        return int(checked(self._cu.cuDeviceGetAttribute(name, self._handle)))

    def load_library(self, cubin: bytes) -> Any:
        return checked(self._cu.cuLibraryLoadData(cubin, [], [], 0, [], [], 0))

    def load_kernel(self, library: Any, symbol: str,
                    max_dynamic_shared_bytes: int) -> Any:
        cu = self._cu
        kernel = checked(cu.cuLibraryGetKernel(library, symbol.encode()))
        if max_dynamic_shared_bytes > 0:
            names = cu.CUfunction_attribute
            checked(cu.cuKernelSetAttribute(
                names.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                max_dynamic_shared_bytes, kernel, self._handle))
        return kernel, checked(cu.cuKernelGetFunction(kernel))

    def parameter_bytes(self, kernel: Any) -> list[int]:
        sizes: list[int] = []
        while True:
            error, _, size = self._cu.cuKernelGetParamInfo(kernel[0],
                                                           len(sizes))
            if int(error) != 0:
                return sizes
            sizes.append(int(size))

    def allow_nonportable_cluster(self, kernel: Any) -> None:
        names = self._cu.CUfunction_attribute
        checked(self._cu.cuKernelSetAttribute(
            names.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1,
            kernel[0], self._handle))

    def blocks_per_sm(self, kernel: Any, step: Any) -> int:
        threads = step.block.x * step.block.y * step.block.z
        return int(checked(
            self._cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                kernel[1], threads, step.dynamic_shared_bytes)))

    def active_clusters(self, kernel: Any, step: Any) -> int:
        error, count = self._cu.cuOccupancyMaxActiveClusters(
            kernel[1], self._config(step, 0))
        return int(count) if int(error) == 0 else 0

    def is_capturing(self, stream: int) -> bool:
        return int(checked(self._cu.cuStreamIsCapturing(
            self._cu.CUstream(stream)))) != 0

    def memset(self, address: int, size_bytes: int, stream: int) -> None:
        checked(self._cu.cuMemsetD8Async(address, 0, size_bytes,
                                         self._cu.CUstream(stream)))

    def tensor_map(self, spec: Any, address: int) -> Any:
        cu = self._cu
        u64 = [cu.cuuint64_t(v) for v in spec.global_dim]
        strides = [cu.cuuint64_t(v) for v in spec.global_strides]
        box = [cu.cuuint32_t(v) for v in spec.box_dim]
        elements = [cu.cuuint32_t(v) for v in spec.element_strides]
        return checked(cu.cuTensorMapEncodeTiled(
            cu.CUtensorMapDataType(spec.data_type), len(u64), address, u64,
            strides, box, elements, cu.CUtensorMapInterleave(spec.interleave),
            cu.CUtensorMapSwizzle(spec.swizzle),
            cu.CUtensorMapL2promotion(spec.l2_promotion),
            cu.CUtensorMapFloatOOBfill(spec.oob_fill)))

    def launch(self, kernel: Any, step: Any, arguments: Sequence[Any],
               stream: int) -> None:
        storage: list[Any] = []
        pointers = (ctypes.c_void_p * len(arguments))()
        for index, argument in enumerate(arguments):
            if isinstance(argument, int):
                value: Any = ctypes.c_uint64(argument)
                pointers[index] = ctypes.addressof(value)
            elif isinstance(argument, bytes):
                value = ctypes.create_string_buffer(argument, len(argument))
                pointers[index] = ctypes.addressof(value)
            else:
                value = argument
                pointers[index] = int(argument.getPtr())
            storage.append(value)  # alive until the driver has copied it
        checked(self._cu.cuLaunchKernelEx(
            self._config(step, stream), kernel[1],
            ctypes.addressof(pointers), 0))

    def _config(self, step: Any, stream: int) -> Any:
        cu = self._cu
        config = cu.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = (
            step.grid.x, step.grid.y, step.grid.z)
        config.blockDimX, config.blockDimY, config.blockDimZ = (
            step.block.x, step.block.y, step.block.z)
        config.sharedMemBytes = step.dynamic_shared_bytes
        config.hStream = cu.CUstream(stream)
        attributes = self._attributes(step)
        config.attrs = attributes
        config.numAttrs = len(attributes)
        return config

    def _attributes(self, step: Any) -> list[Any]:
        cu = self._cu
        attributes = []
        if step.cooperative:
            attribute = cu.CUlaunchAttribute()
            attribute.id = (
                cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            attribute.value.cooperative = 1
            attributes.append(attribute)
        cluster = step.cluster
        if cluster.x * cluster.y * cluster.z > 1:
            attribute = cu.CUlaunchAttribute()
            attribute.id = (
                cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            dimensions = attribute.value.clusterDim
            dimensions.x, dimensions.y, dimensions.z = (
                cluster.x, cluster.y, cluster.z)
            attributes.append(attribute)
        if step.programmatic_stream_serialization and self.device.programmatic:
            attribute = cu.CUlaunchAttribute()
            attribute.id = (
                cu.CUlaunchAttributeID.
                CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            attribute.value.programmaticStreamSerializationAllowed = 1
            attributes.append(attribute)
        return attributes
