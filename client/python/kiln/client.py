"""Connections to kilnd, and compiled plans."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import grpc

from kiln import daemon, plan_text
from kiln.errors import KilnError
from kiln.messages import schema
from kiln.plan_proto import grade_number, plan_message, string
from kiln.session import Session

PROTOCOL = 1
_CALL_TIMEOUT_S = 120.0
# Of the first call. Only asking many GPUs what they are takes seconds.
_GREETING_TIMEOUT_S = 30.0
_DETAIL_TRAILER = "kiln-error-detail-bin"


@dataclasses.dataclass(frozen=True)
class CompiledPlan:
    """A plan for one target. Slots are what the artifact calls its tensors."""

    key: str
    source: str  # "MEMORY", "DISK" or "COMPILED"
    target: str  # "sm_90a/132"
    slot_of_input: list[int]  # -1: the input is not used
    slot_of_output: list[int]
    artifact: Any  # kiln.v1.Artifact
    timing: Any  # kiln.v1.CompileTiming
    plan: Any  # kiln.v1.Plan as it was sent


def connect(socket: str | os.PathLike[str] | None = None, *,
            auto_start: bool = True, kilnd: str | None = None) -> Client:
    """A client of the daemon on `socket` (default: the user's), which is
    started if nobody answers. Raises KilnError."""
    path = os.fspath(socket) if socket else daemon.default_socket()
    reason = daemon.refusal(path)
    if reason and not auto_start:
        raise KilnError("UNAVAILABLE", f"No kilnd answers on {path}: {reason}")
    if reason:
        daemon.start(path, kilnd)
    try:
        return Client(path)
    except KilnError as error:
        if error.code != "UNAVAILABLE":
            raise
        # gRPC waits for no room in the daemon's queue.
        daemon.refusal(path)
        raise _hung_up(path, error.message) from None


class Client:
    """One gRPC channel to a daemon. Thread-safe."""

    def __init__(self, path: str):
        self._path = path
        self._channel = grpc.insecure_channel(
            f"unix:{path}", options=[("grpc.max_receive_message_length", -1),
                                     ("grpc.default_authority", "localhost")])
        self._calls: dict[tuple[str, str], Any] = {}
        info = self.call("Compiler", "GetServerInfo",
                         timeout_s=_GREETING_TIMEOUT_S)
        if info.protocol != PROTOCOL:
            raise KilnError("FAILED_PRECONDITION",
                            f"The daemon speaks protocol {info.protocol}, "
                            f"this client {PROTOCOL}.")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._channel.close()

    def call(self, service: str, method: str, request: Any = None,
             timeout_s: float = _CALL_TIMEOUT_S) -> Any:
        """One unary RPC. Raises KilnError with the server's status, or
        FAILED_PRECONDITION after close()."""
        if (service, method) not in self._calls:
            request_class, response_class = schema().method_types(
                service, method)
            self._calls[service, method] = (self._channel.unary_unary(
                f"/kiln.v1.{service}/{method}",
                request_serializer=request_class.SerializeToString,
                response_deserializer=response_class.FromString),
                request_class)
        function, request_class = self._calls[service, method]
        try:
            return function(request or request_class(), timeout=timeout_s)
        except grpc.RpcError as error:
            raise _kiln_error(error, self._path, method, timeout_s) from None
        except ValueError:  # what gRPC raises for a closed channel alone
            raise _closed() from None

    def info(self) -> Any:
        """kiln.v1.GetServerInfoResponse."""
        return self.call("Compiler", "GetServerInfo")

    def compile(self, plan: plan_text.Plan | str, target: str | None = None,
                *, grade: str | None = None, variant: str = "",
                hit_only: bool = False) -> CompiledPlan:
        """The artifact of `plan` for `target` ("h100-sxm", "sm_90a/132",
        "cpu"; default: PyTorch's current device). `grade`: "fp32" or "tf32";
        default: the plan's. `variant`: "eager" is slow but there at once;
        default: the fastest known (docs/tuning.md has the others). Raises
        KilnError; a PlanError, which is one, for a plan that is wrong by
        itself."""
        message = plan_message(plan)
        request = schema().CompileRequest(
            plan=message, target=string(target or current_target(), "target"),
            policy=schema().enum_number(
                "CompilePolicy", "HIT_ONLY" if hit_only else "ALLOW"),
            variant=string(variant, "variant"), include_artifact=True)
        if grade is not None:
            request.grade = grade_number(grade)
        response = self.call("Compiler", "Compile", request)
        return CompiledPlan(
            response.key, schema().enum("Source", response.source),
            response.target, list(response.slot_of_input),
            list(response.slot_of_output),
            schema().Artifact.FromString(response.artifact), response.timing,
            message)

    def attach(self) -> Session:
        """Opens a session for registering buffers and executing."""
        request_class, event_class = schema().method_types(
            "Buffers", "Attach")
        stream = self._channel.unary_stream(
            "/kiln.v1.Buffers/Attach",
            request_serializer=request_class.SerializeToString,
            response_deserializer=event_class.FromString)
        try:
            events = stream(request_class(protocol=PROTOCOL,
                                          client="kiln-python"))
        except ValueError:
            raise _closed() from None
        return Session(self, events)


def current_target() -> str:
    """The target of PyTorch's current CUDA device: "sm_90a/132"."""
    import torch

    device = torch.cuda.get_device_properties(torch.cuda.current_device())
    suffix = "a" if (device.major, device.minor) == (9, 0) else ""
    return (f"sm_{device.major}{device.minor}{suffix}/"
            f"{device.multi_processor_count}")


def _hung_up(path: str, cause: str) -> KilnError:
    return KilnError(
        "UNAVAILABLE", f"The kilnd on {path} takes the connection and closes "
        "it at once: it is at its limit of connections (--max-connections, 512 "
        "unless set), out of descriptors, or it stops just now; its log says "
        f"which ({cause})")


def _closed() -> KilnError:
    return KilnError("FAILED_PRECONDITION", "The client is closed.")


def _kiln_error(error: Any, path: str, method: str,
                timeout_s: float) -> KilnError:
    detail = None
    trailers = error.trailing_metadata() or ()
    for key, value in trailers:
        if key == _DETAIL_TRAILER:
            detail = schema().ErrorDetail.FromString(value)
    message = error.details()
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED and not trailers:
        message = (f"kilnd on {path} does not answer the {method} before the "
                   f"call's deadline ({timeout_s:g} s)")
    return KilnError(error.code().name, message, detail)
