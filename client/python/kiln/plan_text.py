"""Reads the text form of a Kiln plan (grammar: docs/plan-language.md).

Refuses what `kiln` refuses while it reads, in the same words. Knows nothing of
PyTorch, and leaves shapes and types to the daemon.

    plan = parse(open("examples/plans/p1_group_norm.kiln").read())
    plan.inputs[0].dims, plan.ops[0].attributes["num_groups"]
"""

from __future__ import annotations

import dataclasses
from typing import Any

from kiln.composed_ops import how_to_write
from kiln.errors import PlanError
from kiln.nearest_name import did_you_mean
from kiln.plan_lexer import Token
from kiln.plan_ops import ALIASES, GRADES, OPS, OpInfo
from kiln.token_reader import TokenReader, to_f32

__all__ = ["Input", "Op", "Output", "Plan", "PlanError", "Value", "parse",
           "to_f32"]

_MAX_TEXT_BYTES = 1 << 20
_RESERVED = ("inf", "nan", "none", "None", "true", "false", "True", "False")
_KEYWORDS = ("grade", "input", "param", "output")
_STATEMENTS = "grade, input, param, output or NAME = OP(...)"


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
    operands: list[Value | float | None]  # by position; a float is a constant
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


def parse(text: str) -> Plan:
    """The Plan that `text` describes. Raises PlanError with line and column."""
    size = len(text.encode(errors="surrogatepass"))
    if size > _MAX_TEXT_BYTES:
        raise PlanError("plan text", "is too long", f"{size} bytes",
                        f"at most {_MAX_TEXT_BYTES} bytes")
    return _Parser(TokenReader(text)).run()


class _Parser:

    def __init__(self, reader: TokenReader):
        self._reader = reader
        self._plan = Plan("fp32", [], [], [])
        self._has_grade = False
        self._values: set[str] = set()  # names defined so far

    def run(self) -> Plan:
        while self._reader.peek().kind != "end":
            self._statement()
            self._reader.end_of_line()
        return self._plan

    def _statement(self) -> None:
        if self._reader.next_is("=", 1):
            self._definition()
            return
        keyword = self._reader.name(f"a statement: {_STATEMENTS}")
        if keyword.text == "grade":
            self._grade(keyword)
        elif keyword.text in ("input", "param"):
            self._input(keyword.text == "param")
        elif keyword.text == "output":
            self._output()
        else:
            keyword.fail("no statement starts so" +
                         did_you_mean(keyword.text, _KEYWORDS), _STATEMENTS)

    def _grade(self, keyword: Token) -> None:
        if self._has_grade:
            keyword.fail("a plan has one grade", "one", "a second")
        grade = self._reader.next()
        if grade.text not in GRADES:
            grade.fail("is not a grade", "fp32 or tf32")
        self._plan.grade = grade.text
        self._has_grade = True

    def _input(self, is_parameter: bool) -> None:
        if self._plan.ops:
            self._reader.peek().fail("an input stands behind an op",
                                     "inputs and params before the first op")
        name = self._reader.name("a name")
        self._reader.expect(":")
        dtype = self._reader.dtype()
        self._plan.inputs.append(
            Input(name.text, dtype, self._reader.extents(), is_parameter))
        self._define(name)

    def _output(self) -> None:
        name = self._value().name
        typed = self._reader.skip(":")
        self._plan.outputs.append(
            Output(name, self._reader.dtype() if typed else None))

    def _definition(self) -> None:
        result = self._reader.name("a name")
        self._reader.expect("=")
        called = self._reader.name("an op name")
        kind = ALIASES.get(called.text, called.text)
        if kind not in OPS:
            hint = (how_to_write(called.text) or
                    did_you_mean(called.text, [*OPS, *ALIASES]))
            called.fail("is not an op" + hint, "an op of docs/plan-language.md")
        op = Op(kind, result.text, [None] * len(OPS[kind].operands), {})
        self._arguments(called, op)
        self._plan.ops.append(op)
        self._define(result)

    def _arguments(self, called: Token, op: Op) -> None:
        """Those of `op`, whose kind is written as `called`."""
        info = OPS[op.kind]
        given: set[str] = set()
        position = 0
        self._reader.expect("(")
        while not self._reader.next_is(")"):
            if self._reader.next_is("=", 1):
                at = self._reader.next()
                self._reader.expect("=")
                name = at.text
            else:
                at = self._reader.peek()
                name = _operand_name(at, op, position)
                position += 1
            if name in given:
                at.fail(f"{name} is given twice", "each argument once")
            given.add(name)
            self._argument(at, name, op)
            if not self._reader.skip(","):
                break
        self._reader.expect(")")
        for name, attribute in info.attributes.items():
            if attribute.is_needed and name not in given:
                called.fail(f"{op.kind} needs its {name}", f"{name}=...",
                            "nothing")

    def _argument(self, at: Token, name: str, op: Op) -> None:
        """What is given to the operand or attribute `name`."""
        info = OPS[op.kind]
        if name in info.operands:
            op.operands[info.operands.index(name)] = self._operand(op)
        elif name in info.attributes:
            op.attributes[name] = self._reader.attribute(info.attributes[name])
        else:
            hint = did_you_mean(name, [*info.operands, *info.attributes])
            at.fail(f"{op.kind} has no such argument{hint}", _arguments(info))

    def _operand(self, op: Op) -> Value | float | None:
        if self._reader.skip_none():
            return None
        if not self._reader.next_is_number():
            return self._value()
        info = OPS[op.kind]
        if not info.takes_constants:
            self._reader.peek().fail(
                f"{op.kind} takes a value here, not a number",
                _arguments(info))
        return self._reader.number()

    def _value(self) -> Value:
        name = self._reader.name("the name of a value")
        if name.text not in self._values:
            hint = did_you_mean(name.text, sorted(self._values))
            name.fail(f"is not a value defined above{hint}",
                      "an input or the result of an op")
        return Value(name.text)

    def _define(self, name: Token) -> None:
        if name.text in _RESERVED:
            name.fail("is a reserved word", "another name")
        if name.text in self._values:
            name.fail("is defined a second time", "each name once")
        self._values.add(name.text)


def _operand_name(at: Token, op: Op, position: int) -> str:
    """The operand at `position`."""
    operands = OPS[op.kind].operands
    if position >= len(operands):
        at.fail(f"{op.kind} takes at most {len(operands)} operands; attributes "
                "are given by name", _arguments(OPS[op.kind]))
    return operands[position]


def _arguments(info: OpInfo) -> str:
    return ", ".join([*info.operands, *info.attributes])
