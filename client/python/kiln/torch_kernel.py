"""Compiled plans on PyTorch tensors, launched in this process."""

from __future__ import annotations

from typing import Any, Sequence

from kiln import cuda_driver
from kiln.client import CompiledPlan
from kiln.errors import KilnError
from kiln.launch import Areas, LoadedArtifact
from kiln.messages import schema
from kiln.session import bind


class TorchKernel:
    """A compiled plan, loaded on a device. One launch at a time: the
    workspace belongs to the object.

        kernel = TorchKernel(compiled)
        (y,) = kernel(x, weight, bias)
        kernel.launch([x, weight, bias], [y], parameter_version=1)

    An output must not overlap any other tensor, not even one that it replaces.
    Give a parameter_version other than 0 only if you change it whenever the
    contents of a parameter change. Inside torch.cuda.graph, call prepare()
    before the capture, and launch() with outputs that exist.
    """

    def __init__(self, compiled: CompiledPlan, device: int = 0):
        import torch

        self._torch = torch
        self._compiled = compiled
        self._device = torch.device("cuda", device)
        with torch.cuda.device(self._device):
            torch.cuda.current_stream().synchronize()  # makes the context
            self._loaded = LoadedArtifact(cuda_driver.CudaDriver(device),
                                          compiled.artifact)
        variant = self._loaded.variant
        self._memory = [self._allocate(variant.workspace_bytes),
                        self._allocate(variant.prepared_bytes)]
        workspace, prepared = (0 if memory is None else memory.data_ptr()
                               for memory in self._memory)
        self._areas = Areas(workspace, prepared)

    @property
    def compiled(self) -> CompiledPlan:
        """What is launched."""
        return self._compiled

    @property
    def variant_index(self) -> int:
        return self._loaded.variant_index

    @property
    def prepare_steps(self) -> int:
        """Kernels that prepare() launches."""
        return len(self._loaded.variant.prepare)

    @property
    def launch_steps(self) -> int:
        """Kernels that launch() launches once parameters are prepared."""
        return len(self._loaded.variant.launch)

    def _allocate(self, size_bytes: int) -> Any:
        if size_bytes == 0:
            return None
        return self._torch.empty(size_bytes, dtype=self._torch.uint8,
                                 device=self._device)

    def __call__(self, *inputs: Any, parameter_version: int = 0) -> list[Any]:
        """Launches and returns new output tensors."""
        outputs = self.empty_outputs()
        self.launch(inputs, outputs, parameter_version=parameter_version)
        return outputs

    def empty_outputs(self) -> list[Any]:
        """Uninitialised outputs, in the plan's order."""
        dtypes = {"F32": self._torch.float32, "F16": self._torch.float16,
                  "BF16": self._torch.bfloat16}
        outputs = []
        for slot in self._compiled.slot_of_output:
            desc = self._compiled.artifact.slots[slot].desc
            outputs.append(self._torch.empty(
                tuple(desc.dims), device=self._device,
                dtype=dtypes[schema().enum("DataType", desc.dtype)]))
        return outputs

    def launch(self, inputs: Sequence[Any], outputs: Sequence[Any], *,
               parameter_version: int = 0) -> None:
        """Enqueues one run on PyTorch's current stream."""
        self._loaded.launch(self._stream(), self._addresses(inputs, outputs),
                            parameter_version, self._areas)

    def prepare(self, inputs: Sequence[Any], outputs: Sequence[Any],
                parameter_version: int) -> None:
        self._loaded.prepare(self._stream(), self._addresses(inputs, outputs),
                             parameter_version, self._areas)

    def _stream(self) -> int:
        return int(self._torch.cuda.current_stream(self._device).cuda_stream)

    def _addresses(self, inputs: Sequence[Any],
                   outputs: Sequence[Any]) -> list[int]:
        addresses: list[int] = []
        sizes: list[int] = []
        for slot, tensor in bind(self._compiled, inputs, outputs):
            declared = self._compiled.artifact.slots[slot]
            size = tensor.numel() * tensor.element_size()
            if not tensor.is_contiguous() or size != declared.min_bytes:
                raise KilnError(
                    "INVALID_ARGUMENT",
                    f"Slot {slot} takes a contiguous tensor of "
                    f"{declared.min_bytes} bytes ({size} given).")
            addresses.append(tensor.data_ptr())
            sizes.append(size)
        _check_overlap(addresses, sizes, self._compiled.slot_of_output)
        return addresses


def _check_overlap(addresses: Sequence[int], sizes: Sequence[int],
                   output_slots: Sequence[int]) -> None:
    """Kernels keep values in outputs until these are written."""
    for output in output_slots:
        begin, end = addresses[output], addresses[output] + sizes[output]
        for slot, address in enumerate(addresses):
            if (slot != output and address < end and
                    begin < address + sizes[slot]):
                raise KilnError(
                    "INVALID_ARGUMENT",
                    f"Slot {output} is an output and overlaps slot {slot}.")
