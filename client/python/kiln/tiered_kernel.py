"""A plan that runs at once, and fast as soon as that is compiled."""

from __future__ import annotations

import concurrent.futures
import threading
import warnings
from typing import Any, Sequence

from kiln.client import Client, CompiledPlan, current_target
from kiln.errors import KilnError
from kiln.plan_text import Plan
from kiln.torch_kernel import TorchKernel


class TieredKernel:
    """`plan` on PyTorch tensors: by its plain kernels, which compile in a
    fraction of the time, until the fast ones are there. Used like TorchKernel.

        kernel = kiln.TieredKernel(client, text)
        (y,) = kernel(x, weight, bias)  # soon, but slow
        kernel.wait()
        (y,) = kernel(x, weight, bias)  # fast

    A plan that is in the cache is fast from the start. Both kinds keep to the
    plan's grade but round differently: call wait() first where bits must not
    change, and before torch.cuda.graph, whose captures stay as captured.

    The first launch for which the fast kernels are compiled loads them and waits
    for the device, with memory for both until then; no stream may be capturing.
    If they cannot be had the plain ones stay, and a warning says why. One launch
    at a time, from one thread. Raises KilnError.
    """

    def __init__(self, client: Client, plan: Plan | str, *,
                 grade: str | None = None, device: int = 0):
        import torch

        self._torch = torch
        self._device = device
        with torch.cuda.device(device):
            target = current_target()
        self._coming: concurrent.futures.Future[CompiledPlan] | None = None
        self._failure: Exception | None = None
        self._captured: list[TorchKernel] = []  # their memory is still in use
        cached = _cached(client, plan, target, grade)
        compiled = cached or client.compile(plan, target, grade=grade,
                                            variant="plain")
        self._kernel = TorchKernel(compiled, device)
        if cached is None:
            self._coming = _in_background(
                lambda: client.compile(plan, target, grade=grade))

    @property
    def is_fast(self) -> bool:
        """Whether launches are by the fast kernels by now; only a launch and
        wait() change that."""
        return self._coming is None and self._failure is None

    @property
    def compiled(self) -> CompiledPlan:
        """What launches use by now."""
        return self._kernel.compiled

    def wait(self, timeout_s: float | None = None) -> None:
        """Until the fast kernels are loaded; not inside a capture. Raises what
        keeps them from it, and concurrent.futures.TimeoutError."""
        if self._is_capturing():
            raise KilnError("FAILED_PRECONDITION",
                            "wait() loads kernels; call it before the capture.")
        if self._coming is not None:
            self._coming.exception(timeout_s)
            self._replace()
        if self._failure is not None:
            raise self._failure

    def __call__(self, *inputs: Any, parameter_version: int = 0) -> list[Any]:
        return self._newest()(*inputs, parameter_version=parameter_version)

    def empty_outputs(self) -> list[Any]:
        """Uninitialised outputs, in the plan's order."""
        return self._kernel.empty_outputs()

    def launch(self, inputs: Sequence[Any], outputs: Sequence[Any], *,
               parameter_version: int = 0) -> None:
        self._newest().launch(inputs, outputs,
                              parameter_version=parameter_version)

    def prepare(self, inputs: Sequence[Any], outputs: Sequence[Any],
                parameter_version: int) -> None:
        self._newest().prepare(inputs, outputs, parameter_version)

    def _newest(self) -> TorchKernel:
        if self._coming is None:  # nothing will replace it
            return self._kernel
        if self._is_capturing():
            if self._kernel not in self._captured:
                self._captured.append(self._kernel)
        elif self._coming.done():
            self._replace()
            if self._failure is not None:
                warnings.warn(f"Kiln stays with plain kernels: {self._failure}",
                              stacklevel=3)
        return self._kernel

    def _is_capturing(self) -> bool:
        with self._torch.cuda.device(self._device):
            return bool(self._torch.cuda.is_current_stream_capturing())

    def _replace(self) -> None:
        try:
            fast = TorchKernel(self._coming.result(), self._device)
            # Launches that are under way use the plain kernels' memory.
            self._torch.cuda.synchronize(self._device)
            self._kernel = fast
        except Exception as failure:  # PyTorch's out of memory, for example
            self._failure = failure
        self._coming = None


def _cached(client: Client, plan: Plan | str, target: str,
            grade: str | None) -> CompiledPlan | None:
    try:
        return client.compile(plan, target, grade=grade, hit_only=True)
    except KilnError as error:
        if error.code != "NOT_FOUND":
            raise
        return None


def _in_background(function: Any) -> concurrent.futures.Future[Any]:
    """`function`'s result; the interpreter does not wait for it to exit."""
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as failure:
            future.set_exception(failure)

    threading.Thread(target=run, name="kiln-compile", daemon=True).start()
    return future
