"""The one exception that this package raises for failures of Kiln."""

from __future__ import annotations


class KilnError(RuntimeError):
    """`code` is the gRPC status name, "INVALID_ARGUMENT" for example."""

    def __init__(self, code: str, message: str, detail: object = None):
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.detail = detail  # a kiln.v1.ErrorDetail, or None
