"""Plans as wire messages."""

from __future__ import annotations

import numbers
from typing import Any, Callable, Iterable, NoReturn

from kiln import plan_text
from kiln.errors import PlanError
from kiln.messages import schema
from kiln.plan_ops import APPROXIMATIONS, DTYPES, GRADES, OPS
from kiln.token_reader import to_f32

_HARDTANH_BOUNDS = {"min_val": "min", "max_val": "max"}


def plan_message(plan: plan_text.Plan | str) -> Any:
    """The kiln.v1.Plan of `plan` (or of its text). Raises PlanError for what
    the message cannot hold; the server judges everything else."""
    parsed = plan_text.parse(plan) if isinstance(plan, str) else plan
    if not isinstance(parsed, plan_text.Plan):
        _fail("plan", "is not a plan", parsed, "plan text or a kiln.plan_text.Plan")
    message = schema().Plan(grade=grade_number(parsed.grade))
    values: dict[str, int] = {}
    for i, declared in enumerate(parsed.inputs):
        _add_input(message, declared, f"inputs[{i}]")
        _define(values, declared.name, f"inputs[{i}].name")
    for i, op in enumerate(parsed.ops):
        _add_op(message, op, values, f"ops[{i}]")
        _define(values, op.name, f"ops[{i}].name")
    for i, output in enumerate(parsed.outputs):
        added = message.outputs.add()
        added.value = _value(values, output.name, f"outputs[{i}].value")
        if output.dtype is not None:
            added.dtype = _dtype(output.dtype, f"outputs[{i}].dtype")
    return message


def grade_number(name: str) -> int:
    """The number of kiln.v1.Grade. Raises PlanError."""
    if name not in GRADES:
        _fail("grade", "is not a grade", name, "fp32 or tf32")
    return schema().enum_number("Grade", name.upper())


def string(value: Any, path: str) -> str:
    """`value`, if a message can hold it as a string. Raises PlanError."""
    if not isinstance(value, str):
        _fail(path, "is not a string", value, "a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        _fail(path, "is not a string of Unicode", value, "no surrogates")
    return str(value)


def _add_input(message: Any, declared: plan_text.Input, path: str) -> None:
    added = message.inputs.add()
    added.name = string(declared.name, f"{path}.name")
    added.desc.dtype = _dtype(declared.dtype, f"{path}.desc.dtype")
    added.desc.dims.extend(_dims(declared.dims, f"{path}.desc.dims"))
    added.role = schema().enum_number(
        "InputRole", "PARAMETER" if declared.is_parameter else "ACTIVATION")


def _add_op(message: Any, op: plan_text.Op, values: dict[str, int],
            path: str) -> None:
    if string(op.kind, f"{path}.kind") not in OPS:
        _fail(f"{path}.kind", "is not an op", op.kind,
              "an op of docs/plan-language.md")
    info = OPS[op.kind]
    added = message.ops.add(kind=info.number,
                            name=string(op.name, f"{path}.name"))
    for i, operand in enumerate(op.operands):
        place = added.operands.add()
        where = f"{path}.operands[{i}]"
        if isinstance(operand, plan_text.Value):
            place.value = _value(values, operand.name, where)
        elif operand is not None:
            place.constant = _number(operand, where)
    for name, value in op.attributes.items():
        where = f"{path}.{info.member}.{name}"
        if name not in info.attributes:
            _fail(f"{path}.{name}", f"{op.kind} has no such attribute", value,
                  ", ".join(info.attributes) or "none")
        attributes = getattr(added, str(info.member))
        attributes.SetInParent()
        attribute = info.attributes[name]
        if value is None and attribute.may_be_none:
            continue
        _set(attributes, _HARDTANH_BOUNDS.get(name, name),
             _READERS[attribute.type](value, where))


def _set(attributes: Any, name: str, value: Any) -> None:
    if isinstance(value, list):
        getattr(attributes, name).extend(value)
    else:
        setattr(attributes, name, value)


def _define(values: dict[str, int], name: str, path: str) -> None:
    if name in values:
        _fail(path, "is defined a second time", name, "each name once")
    values[name] = len(values)


def _value(values: dict[str, int], name: str, path: str) -> int:
    if string(name, path) not in values:
        _fail(path, "is not a value defined before", name,
              "an input or the result of an op")
    return values[name]


# What a Plan that was not read from text may hold: each returns what goes into
# the message, or raises PlanError.


def _boolean(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        _fail(path, "is not a boolean", value, "true or false")
    return bool(value)


def _integer(value: Any, path: str) -> int:
    is_integer = (isinstance(value, numbers.Integral) and
                  not isinstance(value, bool))
    if not is_integer or not -1 << 63 <= value < 1 << 63:
        _fail(path, "is not an integer", value, "a 64-bit integer")
    return int(value)


def _number(value: Any, path: str) -> float:
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        _fail(path, "is not a number", value, "a number")
    try:
        return to_f32(float(value))
    except OverflowError:
        _fail(path, "does not fit f32", value,
              "a number within the range of f32")


def _dims(value: Any, path: str) -> list[int]:
    entries: Iterable[Any] = (value if isinstance(value, (list, tuple))
                              else [value])
    return [_integer(entry, path) for entry in entries]


def _pair(value: Any, path: str) -> list[int]:
    entries = _dims(value, path)
    if not 1 <= len(entries) <= 2:
        _fail(path, "has the wrong number of entries", len(entries),
              "one number, or two for height and width")
    return entries


def _dtype(value: Any, path: str) -> int:
    if value not in DTYPES:
        _fail(path, "is not a data type", value, "f32, f16 or bf16")
    return schema().enum_number("DataType", value.upper())


def _approximation(value: Any, path: str) -> int:
    if value not in APPROXIMATIONS:
        _fail(path, "is not an approximation of gelu", value, "none or tanh")
    return APPROXIMATIONS.index(value)


# By the type of an attribute.
_READERS: dict[str, Callable[[Any, str], Any]] = {
    "boolean": _boolean, "integer": _integer, "number": _number,
    "pair": _pair, "dims": _dims, "dtype": _dtype,
    "approximation": _approximation}


def _fail(path: str, problem: str, value: object, limit: str) -> NoReturn:
    raise PlanError(path, problem, repr(value), limit)
