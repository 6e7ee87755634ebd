"""Reads the text form of a Kiln plan (grammar: docs/plan-language.md).

Knows nothing of PyTorch and checks the grammar only, not shapes or types:
`kiln` refuses wrong plans; this reader is for plans it has accepted.

    plan = parse(open("examples/plans/p1_group_norm.kiln").read())
    plan.inputs[0].dims, plan.ops[0].attributes["num_groups"]
"""

from __future__ import annotations

import dataclasses
import re
import struct
from typing import Any, Iterable, Iterator, NoReturn

# Names of the operands of each op, in order; docs/ops.md lists them.
_NORM_AFFINE = ("weight", "bias")
_OPERANDS = {
    "conv2d": ("input", "weight", "bias"),
    "conv_transpose2d": ("input", "weight", "bias"),
    "group_norm": ("input",) + _NORM_AFFINE,
    "batch_norm": ("input", "running_mean", "running_var") + _NORM_AFFINE,
}
_BINARY = ("add", "sub", "mul", "div", "minimum", "maximum")
_OPERANDS.update({name: ("input", "other") for name in _BINARY})
_UNARY = ("input",)
_ALIASES = {"max": "amax", "min": "amin"}

_Token = tuple[str, str, int]  # kind, text, line

_TOKEN = re.compile(r"""
    (?P<comment>\#[^\n]*) | (?P<newline>\n) | (?P<blank>[ \t\r]+) |
    (?P<number>[+-](?:inf|nan) | [+-]?0[xX][0-9a-fA-F.]+(?:[pP][+-]?\d+)? |
               [+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?) |
    (?P<name>[A-Za-z_][A-Za-z0-9_.\-]*) | (?P<punct>[=()\[\],:])
    """, re.VERBOSE)


class PlanError(ValueError):
    """The text is not a plan; the message names the line."""


@dataclasses.dataclass(frozen=True)
class Value:
    """A use of the input or op result called `name`."""
    name: str


@dataclasses.dataclass
class Input:
    name: str
    dtype: str  # "f32", "f16", "bf16"
    dims: list[int]
    is_parameter: bool


@dataclasses.dataclass
class Op:
    kind: str  # "conv2d"
    name: str  # of its result
    operands: list[Value | float | None]  # Value, float (a constant) or None, by position
    attributes: dict[str, Any]  # those that the text gives


@dataclasses.dataclass
class Output:
    name: str
    dtype: str | None  # None: by promotion


@dataclasses.dataclass
class Plan:
    grade: str
    inputs: list[Input]
    ops: list[Op]
    outputs: list[Output]


def to_f32(value: float) -> float:
    """`value` rounded to f32, which attributes and constants are in a plan."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def parse(text: str) -> Plan:
    """The Plan that `text` describes. Raises PlanError."""
    return _Parser(_statements(text)).run()


def _statements(text: str) -> Iterator[list[_Token]]:
    """Token lists, one per statement; brackets join lines."""
    statement: list[_Token] = []
    depth, line, position = 0, 1, 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise PlanError(f"line {line}: no token starts at "
                            f"{text[position:position + 10]!r}")
        position = match.end()
        kind, token = match.lastgroup or "", match.group()
        if kind == "newline":
            line += 1
            if depth == 0 and statement:
                yield statement
                statement = []
        elif kind not in ("comment", "blank"):
            depth += (token in "([") - (token in ")]")
            statement.append((kind, token, line))
    if statement:
        yield statement


class _Parser:

    def __init__(self, statements: Iterable[list[_Token]]):
        self._statements = statements
        self._plan = Plan("fp32", [], [], [])
        self._tokens: list[_Token] = []

    def run(self) -> Plan:
        for tokens in self._statements:
            self._tokens = tokens
            self._statement()
            if self._tokens:
                self._fail("the end of the line")
        return self._plan

    def _statement(self) -> None:
        if len(self._tokens) > 1 and self._tokens[1][1] == "=":
            self._definition()
            return
        keyword = self._next("name")
        if keyword == "grade":
            self._plan.grade = self._next("name")
        elif keyword in ("input", "param"):
            name = self._next("name")
            self._expect(":")
            dtype = self._next("name")
            self._plan.inputs.append(
                Input(name, dtype, self._list(), keyword == "param"))
        elif keyword == "output":
            name = self._next("name")
            typed = self._skip(":")
            self._plan.outputs.append(
                Output(name, self._next("name") if typed else None))
        else:
            raise PlanError(f"no statement starts with {keyword!r}")

    def _definition(self) -> None:
        result = self._next("name")
        self._expect("=")
        kind = self._next("name")
        kind = _ALIASES.get(kind, kind)
        names = _OPERANDS.get(kind, _UNARY)
        op = Op(kind, result, [None] * len(names), {})
        self._expect("(")
        position = 0
        while not self._skip(")"):
            if len(self._tokens) > 1 and self._tokens[1][1] == "=":
                name = self._next("name")
                self._expect("=")
                if name in names:
                    op.operands[names.index(name)] = self._operand()
                else:
                    op.attributes[name] = self._literal()
            elif position < len(names):
                op.operands[position] = self._operand()
                position += 1
            else:
                self._fail(f"at most {len(names)} operands of {kind}")
            if not self._skip(",") and not self._is(")"):
                self._fail("',' or ')'")
        self._plan.ops.append(op)

    def _operand(self) -> Value | float | None:
        value = self._literal()
        if isinstance(value, str):
            return Value(value)
        return None if value is None else to_f32(value)

    def _literal(self) -> Any:
        """A number, list of numbers, boolean, None, or word."""
        if self._is("[") or self._is("("):
            return self._list()
        if not self._tokens:
            self._fail("a value")
        kind, token, _ = self._tokens.pop(0)
        if kind == "number":
            return _number(token)
        words = {"true": True, "True": True, "false": False, "False": False,
                 "none": None, "None": None, "inf": float("inf"),
                 "nan": float("nan")}
        return words.get(token, token)

    def _list(self) -> list[int]:
        close = "]" if self._skip("[") else ")"
        if close == ")":
            self._expect("(")
        entries = []
        while not self._skip(close):
            entries.append(int(self._next("number")))
            if not self._skip(",") and not self._is(close):
                self._fail(f"',' or {close!r}")
        return entries

    def _is(self, text: str) -> bool:
        return bool(self._tokens) and self._tokens[0][1] == text

    def _skip(self, text: str) -> bool:
        found = self._is(text)
        if found:
            self._tokens.pop(0)
        return found

    def _expect(self, text: str) -> None:
        if not self._skip(text):
            self._fail(repr(text))

    def _next(self, kind: str) -> str:
        if not self._tokens or self._tokens[0][0] != kind:
            self._fail(f"a {kind}")
        return self._tokens.pop(0)[1]

    def _fail(self, wanted: str) -> NoReturn:
        at = self._tokens[0] if self._tokens else ("", "the end of the line", 0)
        raise PlanError(f"line {at[2]}: found {at[1]!r}, wanted {wanted}")


def _number(token: str) -> int | float:
    """An int, or a float; hexadecimal floats as C writes them."""
    if "inf" in token or "nan" in token:
        return float(token)
    if "0x" in token.lower():
        return float.fromhex(token)
    try:
        return int(token)
    except ValueError:
        return float(token)
