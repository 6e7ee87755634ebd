"""Sessions: buffers shared with the daemon, and execution on them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Sequence

from kiln.errors import KilnError
from kiln.messages import schema

if TYPE_CHECKING:
    from kiln.client import Client, CompiledPlan


class Session:
    """Lives as long as its Attach stream; close() ends it and with it every
    registration. Keep tensors alive while they are registered."""

    def __init__(self, client: Client, events: Any):
        self._client = client
        self._events = events
        try:
            opened = next(events)
        except Exception as error:
            raise KilnError("UNAVAILABLE", f"Attach fails: {error}") from None
        self.id: str = opened.opened.session
        self.restarts: list[str] = []  # reasons of executor_restarted events
        self._buffers: dict[tuple[str, bytes], str] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._events.cancel()

    def _read(self) -> None:
        try:
            for event in self._events:
                if event.HasField("executor_restarted"):
                    self._buffers.clear()
                    self.restarts.append(event.executor_restarted.reason)
        except Exception:  # the stream ends when the session does
            return

    def register(self, tensor: Any, device: str = "cuda:0") -> tuple[str, int]:
        """Shares the allocation that holds `tensor`, once. Returns the buffer
        and the tensor's offset in it, in bytes."""
        from kiln import cuda_driver

        memory = cuda_driver.export_memory(tensor.data_ptr())
        known = (device, memory.handle)
        if known not in self._buffers:
            request = schema().RegisterRequest(session=self.id, device=device)
            request.cuda_ipc.handle = memory.handle
            request.cuda_ipc.device_uuid = cuda_driver.device_uuid(
                tensor.device.index or 0)
            response = self._client.call("Buffers", "Register", request)
            self._buffers[known] = response.buffer
        return self._buffers[known], memory.offset_bytes

    def execute(self, compiled: CompiledPlan, inputs: Sequence[Any],
                outputs: Sequence[Any], *, device: str = "cuda:0",
                parameter_version: int = 0) -> Any:
        """Runs `compiled` in the daemon and returns its ExecuteResponse once
        `outputs` are complete. Waits for PyTorch's current stream first."""
        import torch

        request = schema().ExecuteRequest(
            session=self.id, key=compiled.key, device=device,
            parameter_version=parameter_version)
        for slot, tensor in bind(compiled, inputs, outputs):
            buffer, offset = self.register(tensor, device)
            request.bindings.add(slot=slot, buffer=buffer,
                                 offset_bytes=offset)
        torch.cuda.current_stream().synchronize()
        return self._client.call("Executor", "Execute", request)


def bind(compiled: CompiledPlan, inputs: Sequence[Any],
         outputs: Sequence[Any]) -> list[tuple[int, Any]]:
    """(slot, tensor) for every slot, in slot order."""
    if (len(inputs) != len(compiled.slot_of_input) or
            len(outputs) != len(compiled.slot_of_output)):
        raise KilnError(
            "INVALID_ARGUMENT",
            f"The plan takes {len(compiled.slot_of_input)} inputs and "
            f"{len(compiled.slot_of_output)} outputs "
            f"({len(inputs)} and {len(outputs)} given).")
    pairs = [(slot, tensor) for slot, tensor
             in zip(compiled.slot_of_input, inputs) if slot >= 0]
    pairs += zip(compiled.slot_of_output, outputs)
    return sorted(dict(pairs).items())
