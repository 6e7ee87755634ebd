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
    """`plan` on PyTorch tensors: an operation at a time, by kernels that are
    there for every plan (the variant "eager"), until its own are compiled. Used
    like TorchKernel.

        kernel = kiln.TieredKernel(client, text)
        (y,) = kernel(x, weight, bias)  # at once, but slow
        kernel.wait()
        (y,) = kernel(x, weight, bias)  # fast

    A plan that is in the cache is fast from the start. Both kinds keep to the
    plan's grade but round differently: call wait() first where bits must not
    change, and before torch.cuda.graph, whose captures stay as captured.

    Eager kernels keep the results of operations in memory, as PyTorch does. If
    there is not enough, the constructor waits for the fast ones. The first plan
    for a kind of GPU waits until the daemon has compiled the eager kernels,
    about a second, once for a cache.

    The first launch for which the fast kernels are compiled loads them and waits
    for the device, with memory for both until then; no stream may be capturing.
    If they cannot be had the eager ones stay, and a warning says why. One launch
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

        def compile_fast() -> CompiledPlan:
            return client.compile(plan, target, grade=grade)

        cached = _cached(client, plan, target, grade)
        if cached is not None:
            self._kernel = TorchKernel(cached, device)
            return
        eager = client.compile(plan, target, grade=grade, variant="eager")
        try:
            self._kernel = TorchKernel(eager, device)
        except torch.cuda.OutOfMemoryError:
            self._kernel = TorchKernel(compile_fast(), device)
        else:
            self._coming = _in_background(compile_fast)

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
            self._replace(self._coming)
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
            self._replace(self._coming)
            if self._failure is not None:
                warnings.warn(f"Kiln stays with eager kernels: {self._failure}",
                              stacklevel=3)
        return self._kernel

    def _is_capturing(self) -> bool:
        with self._torch.cuda.device(self._device):
            return bool(self._torch.cuda.is_current_stream_capturing())

    def _replace(self, coming: concurrent.futures.Future[CompiledPlan]) -> None:
        try:
            fast = TorchKernel(coming.result(), self._device)
            # Launches that are under way use the eager kernels' memory.
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
