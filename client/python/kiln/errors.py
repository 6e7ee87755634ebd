"""The exceptions that this package raises for failures of Kiln."""

from __future__ import annotations


class KilnError(RuntimeError):
    """`code` is the gRPC status name, "INVALID_ARGUMENT" for example."""

    def __init__(self, code: str, message: str, detail: object = None):
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.detail = detail  # a kiln.v1.ErrorDetail, or None


class PlanError(KilnError, ValueError):
    """INVALID_ARGUMENT for a plan that is wrong by itself, in the words of
    `kiln`: `field` is "line 2, column 5" of a text, "ops[0].name" of a Plan."""

    def __init__(self, field: str, problem: str, value: str, limit: str):
        super().__init__("INVALID_ARGUMENT", f"{field}: {problem} "
                         f"(got {value}, allowed: {limit})")
        self.field = field
        self.value = value
        self.limit = limit
