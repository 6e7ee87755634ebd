"""Launch records on a device: the Python twin of jit/run.

Both read the records of tests/goldens/launch_records and must make the same
driver calls from them; jit/run/loaded_artifact.h has the prose. What a driver
must offer is `Driver`; kiln.cuda_driver is the real one.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Protocol, Sequence

from kiln.errors import KilnError
from kiln.messages import schema

_TENSOR_MAP_BYTES = 128
_POINTER_BYTES = 8


@dataclasses.dataclass(frozen=True)
class Device:
    """What variants are chosen by."""

    target: str
    sm_count: int
    shared_optin_bytes: int
    cooperative: bool
    cluster: bool
    programmatic: bool  # launches may overlap


class Driver(Protocol):
    """The driver calls of loading and launching, in the current context."""

    device: Device

    def load_library(self, cubin: bytes) -> Any: ...
    def load_kernel(self, library: Any, symbol: str,
                    max_dynamic_shared_bytes: int) -> Any: ...
    def parameter_bytes(self, kernel: Any) -> list[int]: ...
    def allow_nonportable_cluster(self, kernel: Any) -> None: ...
    def blocks_per_sm(self, kernel: Any, step: Any) -> int: ...
    def active_clusters(self, kernel: Any, step: Any) -> int: ...
    def is_capturing(self, stream: int) -> bool: ...
    def memset(self, address: int, size_bytes: int, stream: int) -> None: ...
    def tensor_map(self, spec: Any, address: int) -> Any: ...
    def launch(self, kernel: Any, step: Any, arguments: Sequence[Any],
               stream: int) -> None:
        """`arguments`: an int for an address, bytes for a constant, or what
        tensor_map returned."""


@dataclasses.dataclass
class Areas:
    """Memory of one launch at a time, and what is known of its contents."""

    workspace: int = 0
    prepared: int = 0
    zeroed_once: bool = False
    is_prepared: bool = False
    parameter_version: int = 0
    parameters: tuple[int, ...] = ()


class LoadedArtifact:
    """An artifact on a device: code loaded, variant chosen, checked."""

    def __init__(self, driver: Driver, artifact: Any):
        """Raises KilnError: FAILED_PRECONDITION for another target,
        INVALID_ARGUMENT for a record that contradicts itself."""
        if artifact.format != 1:
            raise KilnError("UNIMPLEMENTED",
                            f"Artifact format {artifact.format} is unknown.")
        if artifact.target != driver.device.target:
            raise KilnError(
                "FAILED_PRECONDITION",
                f"The artifact is for another target ({artifact.target}; the "
                f"device is {driver.device.target}).")
        check_record(artifact)
        self._driver = driver
        self._artifact = artifact
        self._libraries: dict[int, Any] = {}
        self._kernels: dict[tuple[int, int], Any] = {}
        for index, variant in enumerate(artifact.variants):
            if self._try(variant):
                self.variant, self.variant_index = variant, index
                break
        else:
            raise KilnError("FAILED_PRECONDITION",
                            "No variant of the artifact fits on the device.")

    def launch(self, stream: int, slots: Sequence[int],
               parameter_version: int, areas: Areas) -> None:
        """Enqueues memsets, prepare steps if they are due, and the launch
        steps. Allocates nothing and may be captured."""
        self._check_slots(slots, parameters_only=False)
        try:
            self._zero_once_and_prepare(stream, slots, parameter_version,
                                        areas)
            self._zero(stream, "EACH_LAUNCH", areas)
            self._run(stream, self.variant.launch, slots, areas)
        except Exception:
            areas.zeroed_once = areas.is_prepared = False
            raise

    def prepare(self, stream: int, slots: Sequence[int],
                parameter_version: int, areas: Areas) -> None:
        """The part of launch() that need not be repeated; call it before a
        capture."""
        self._check_slots(slots, parameters_only=True)
        self._zero_once_and_prepare(stream, slots, parameter_version, areas)

    def _try(self, variant: Any) -> bool:
        device, needs = self._driver.device, variant.requirements
        if (needs.min_sm_count > device.sm_count or
                needs.shared_optin_bytes > device.shared_optin_bytes or
                (needs.cooperative and not device.cooperative) or
                (needs.cluster_size > 1 and not device.cluster)):
            return False
        for step in [*variant.prepare, *variant.launch]:
            kernel = self._kernel(step)
            self._check_arguments(kernel, step)
            if step.nonportable_cluster:
                self._driver.allow_nonportable_cluster(kernel)
            if not self._fits(kernel, step):
                return False
        return True

    def _kernel(self, step: Any) -> Any:
        index = (step.module, step.entry)
        if index not in self._kernels:
            module = self._artifact.modules[step.module]
            if step.module not in self._libraries:
                self._libraries[step.module] = self._driver.load_library(
                    module.cubin)
            entry = module.entries[step.entry]
            self._kernels[index] = self._driver.load_kernel(
                self._libraries[step.module], entry.symbol,
                entry.max_dynamic_shared_bytes)
        return self._kernels[index]

    def _check_arguments(self, kernel: Any, step: Any) -> None:
        taken = self._driver.parameter_bytes(kernel)
        given = [_argument_bytes(arg) for arg in step.args]
        for index, size in enumerate(given):
            expected = taken[index] if index < len(taken) else 0
            if size != expected:
                raise KilnError(
                    "INVALID_ARGUMENT",
                    f"Argument {index} does not fit the kernel ({size} bytes "
                    f"given, {expected} taken).")
        if len(taken) > len(given):
            raise KilnError("INVALID_ARGUMENT",
                            "The kernel takes more arguments than the record "
                            f"has ({len(given)}).")

    def _fits(self, kernel: Any, step: Any) -> bool:
        cluster = _product(step.cluster)
        if cluster > 1:
            resident = self._driver.active_clusters(kernel, step) * cluster
        else:
            resident = (self._driver.blocks_per_sm(kernel, step) *
                        self._driver.device.sm_count)
        return resident >= (_product(step.grid) if step.cooperative
                            else cluster)

    def _check_slots(self, slots: Sequence[int],
                     parameters_only: bool) -> None:
        declared = self._artifact.slots
        if len(slots) != len(declared):
            raise KilnError("INVALID_ARGUMENT",
                            f"The number of slots is wrong ({len(slots)} "
                            f"given, {len(declared)} needed).")
        for index, (address, slot) in enumerate(zip(slots, declared)):
            if parameters_only and _role(slot) != "PARAM":
                continue
            if address == 0 or address % max(slot.align, 1) != 0:
                raise KilnError("INVALID_ARGUMENT",
                                f"The address of slot {index} is null or "
                                f"misaligned ({address:#x}, alignment "
                                f"{slot.align}).")

    def _zero_once_and_prepare(self, stream: int, slots: Sequence[int],
                               version: int, areas: Areas) -> None:
        parameters = tuple(slots[i] for i in self.variant.prepared_from)
        prepare = bool(self.variant.prepare) and (
            not areas.is_prepared or version == 0 or
            version != areas.parameter_version or
            parameters != areas.parameters)
        if areas.zeroed_once and not prepare:
            return
        capturing = self._driver.is_capturing(stream)
        if not areas.zeroed_once:
            self._zero(stream, "ONCE", areas)
        if prepare:
            self._run(stream, self.variant.prepare, slots, areas)
        if capturing:  # what was only recorded has not happened
            return
        areas.zeroed_once = areas.is_prepared = True
        areas.parameter_version, areas.parameters = version, parameters

    def _zero(self, stream: int, when: str, areas: Areas) -> None:
        number = schema().ZeroRange.When.Value(when)
        for range_ in self.variant.zero:
            if range_.when == number and range_.size_bytes > 0:
                area = _area(range_, areas)
                self._driver.memset(area + range_.offset_bytes,
                                    range_.size_bytes, stream)

    def _run(self, stream: int, steps: Any, slots: Sequence[int],
             areas: Areas) -> None:
        for step in steps:
            arguments = [self._argument(arg, slots, areas)
                         for arg in step.args]
            self._driver.launch(self._kernels[step.module, step.entry], step,
                                arguments, stream)

    def _argument(self, arg: Any, slots: Sequence[int], areas: Areas) -> Any:
        kind = arg.WhichOneof("arg")
        if kind == "slot":
            return slots[arg.slot.slot] + arg.slot.offset_bytes
        if kind == "workspace_offset":
            return areas.workspace + arg.workspace_offset
        if kind == "prepared_offset":
            return areas.prepared + arg.prepared_offset
        if kind == "constant":
            return arg.constant
        spec = arg.tensor_map
        return self._driver.tensor_map(spec,
                                       slots[spec.slot] + spec.offset_bytes)


def check_record(artifact: Any) -> None:
    """Raises INVALID_ARGUMENT, with the field's path, if a launch record
    refers to anything that the artifact does not declare."""
    if not artifact.variants:
        _malformed("variants", "there is none")
    for index, variant in enumerate(artifact.variants):
        path = f"variants[{index}]"
        for number, range_ in enumerate(variant.zero):
            limit = _area(range_, Areas(variant.workspace_bytes,
                                        variant.prepared_bytes))
            if not (0 <= range_.offset_bytes and 0 <= range_.size_bytes and
                    range_.offset_bytes + range_.size_bytes <= limit):
                _malformed(f"{path}.zero[{number}]",
                           "the range lies outside")
        for part in ("prepare", "launch"):
            for number, step in enumerate(getattr(variant, part)):
                _check_step(f"{path}.{part}[{number}]", artifact, variant,
                            step)
    needs = artifact.variants[-1].requirements
    if needs != type(needs)():
        _malformed("variants", "the last one has requirements")


def _check_step(path: str, artifact: Any, variant: Any, step: Any) -> None:
    _check_index(f"{path}.module", step.module, artifact.modules)
    entries = artifact.modules[step.module].entries
    _check_index(f"{path}.entry", step.entry, entries)
    limit = entries[step.entry].max_dynamic_shared_bytes
    if not 0 <= step.dynamic_shared_bytes <= limit:
        _malformed(f"{path}.dynamic_shared_bytes",
                   "more than the entry declares")
    for index, arg in enumerate(step.args):
        _check_argument(f"{path}.args[{index}]", artifact, variant, arg)


def _check_argument(path: str, artifact: Any, variant: Any, arg: Any) -> None:
    kind = arg.WhichOneof("arg")
    if kind == "constant":
        if not arg.constant:
            _malformed(path, "the constant is empty")
        return
    if kind == "workspace_offset":
        offset, limit = arg.workspace_offset, variant.workspace_bytes
    elif kind == "prepared_offset":
        offset, limit = arg.prepared_offset, variant.prepared_bytes
    elif kind in ("slot", "tensor_map"):
        place = getattr(arg, kind)
        _check_index(path, place.slot, artifact.slots)
        offset = place.offset_bytes
        limit = artifact.slots[place.slot].min_bytes
    else:
        _malformed(path, "the argument is of an unknown kind")
    if not 0 <= offset < max(limit, 1):
        _malformed(path, f"the offset lies outside ({offset} of {limit})")


def _check_index(path: str, index: int, sequence: Any) -> None:
    if not 0 <= index < len(sequence):
        _malformed(path, f"no such index ({index} of {len(sequence)})")


def _malformed(path: str, what: str) -> None:
    raise KilnError("INVALID_ARGUMENT",
                    f"The launch record is malformed at {path}: {what}.")


def _argument_bytes(arg: Any) -> int:
    kind = arg.WhichOneof("arg")
    if kind == "constant":
        return len(arg.constant)
    return _TENSOR_MAP_BYTES if kind == "tensor_map" else _POINTER_BYTES


def _area(range_: Any, areas: Areas) -> int:
    is_workspace = range_.area == schema().enum_number("Area", "WORKSPACE")
    return areas.workspace if is_workspace else areas.prepared


def _role(slot: Any) -> str:
    return str(schema().Slot.Role.Name(slot.role))


def _product(extents: Any) -> int:
    return int(math.prod((extents.x or 1, extents.y or 1, extents.z or 1)))
