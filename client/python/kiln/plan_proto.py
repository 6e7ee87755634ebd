"""Plans as wire messages."""

from __future__ import annotations

from typing import Any

from kiln import plan_text
from kiln.messages import schema

# Numbers of kiln::OpKind, and the member of kiln.v1.Op.attributes.
_OPS: dict[str, tuple[int, str | None]] = {
    "conv2d": (1, "conv"), "conv_transpose2d": (2, "conv"),
    "group_norm": (10, "group_norm"), "batch_norm": (11, "batch_norm"),
    "max_pool2d": (20, "pool"), "avg_pool2d": (21, "pool"),
    "sum": (30, "reduce"), "mean": (31, "reduce"), "amax": (32, "reduce"),
    "amin": (33, "reduce"), "logsumexp": (34, "reduce"),
    "softmax": (35, "softmax"), "relu": (50, None),
    "leaky_relu": (51, "leaky_relu"), "gelu": (52, "gelu"),
    "tanh": (53, None), "sigmoid": (54, None), "silu": (55, None),
    "hardswish": (56, None), "hardsigmoid": (57, None),
    "hardtanh": (58, "clamp"), "clamp": (59, "clamp"), "mish": (60, None),
    "softplus": (61, "softplus"), "elu": (62, "elu"), "abs": (63, None),
    "neg": (64, None), "exp": (65, None), "sqrt": (66, None),
    "add": (80, None), "sub": (81, None), "mul": (82, None),
    "div": (83, None), "minimum": (84, None), "maximum": (85, None),
    "cast": (100, "cast"),
}
_HARDTANH_BOUNDS = {"min_val": "min", "max_val": "max"}


def plan_message(plan: plan_text.Plan | str) -> Any:
    """The kiln.v1.Plan of `plan` (or of its text). Raises PlanError for text
    that is no plan; the server judges everything else."""
    parsed = plan_text.parse(plan) if isinstance(plan, str) else plan
    message = schema().Plan()
    message.grade = schema().enum_number("Grade", parsed.grade.upper())
    values: dict[str, int] = {}
    for declared in parsed.inputs:
        values[declared.name] = len(values)
        _add_input(message, declared)
    for op in parsed.ops:
        _add_op(message, op, values)
        values[op.name] = len(values)
    for output in parsed.outputs:
        added = message.outputs.add()
        added.value = _value(values, output.name)
        if output.dtype is not None:
            added.dtype = _dtype(output.dtype)
    return message


def _dtype(name: str) -> int:
    return schema().enum_number("DataType", name.upper())


def _value(values: dict[str, int], name: str) -> int:
    if name not in values:
        raise plan_text.PlanError(f"no value is called {name!r}")
    return values[name]


def _add_input(message: Any, declared: plan_text.Input) -> None:
    added = message.inputs.add()
    added.name = declared.name
    added.desc.dtype = _dtype(declared.dtype)
    added.desc.dims.extend(declared.dims)
    added.role = schema().enum_number(
        "InputRole", "PARAMETER" if declared.is_parameter else "ACTIVATION")


def _add_op(message: Any, op: plan_text.Op, values: dict[str, int]) -> None:
    if op.kind not in _OPS:
        raise plan_text.PlanError(f"no op is called {op.kind!r}")
    number, member = _OPS[op.kind]
    added = message.ops.add()
    added.kind = number
    added.name = op.name
    for operand in op.operands:
        place = added.operands.add()
        if isinstance(operand, plan_text.Value):
            place.value = _value(values, operand.name)
        elif operand is not None:
            place.constant = operand
    if not op.attributes:
        return
    if member is None:
        raise plan_text.PlanError(f"{op.kind} has no attributes")
    attributes = getattr(added, member)
    attributes.SetInParent()
    for name, value in op.attributes.items():
        _set_attribute(attributes, _HARDTANH_BOUNDS.get(name, name), value)


def _set_attribute(attributes: Any, name: str, value: Any) -> None:
    field = attributes.DESCRIPTOR.fields_by_name.get(name)
    if field is None:
        raise plan_text.PlanError(f"no attribute is called {name!r}")
    if value is None:
        return
    if isinstance(getattr(attributes, name), (bool, int, float)):
        if name == "dtype":
            value = _dtype(value)
        elif name == "approximate":
            value = {"none": 0, "tanh": 1}[value]
        setattr(attributes, name, value)
    else:
        entries = value if isinstance(value, list) else [value]
        getattr(attributes, name).extend(entries)
