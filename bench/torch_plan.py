"""Evaluates Kiln plans with PyTorch: the yardstick of accuracy and speed.

    plan = plan_text.parse(text)
    outputs = torch_plan.evaluate(plan, tensors)           # eager, as typed
    outputs = torch_plan.evaluate(plan, tensors, torch.float64)  # the truth
    compiled = torch.compile(torch_plan.as_function(plan))
    outputs = compiled(*tensors)

`tensors` holds one tensor per input of the plan, in order. Attributes are f32
in a plan, so 1e-5 means the f32 nearest to it.
"""

import operator

import torch
import torch.nn.functional as F

from kiln.plan_text import Value, parse, to_f32

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}

_UNARY = {
    "relu": F.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid,
    "silu": F.silu, "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid,
    "mish": F.mish, "abs": torch.abs, "neg": torch.neg, "exp": torch.exp,
    "sqrt": torch.sqrt,
}
_BINARY = {"add": operator.add, "sub": operator.sub, "mul": operator.mul,
           "div": operator.truediv, "minimum": torch.minimum,
           "maximum": torch.maximum}
_REDUCE = {"sum": torch.sum, "mean": torch.mean, "amax": torch.amax,
           "amin": torch.amin, "logsumexp": torch.logsumexp}


def evaluate(plan, tensors, dtype=None, *, tf32_operands=False):
    """The outputs of `plan` (a Plan or its text) for `tensors`, as a list.

    With `dtype`, every tensor is converted to it first, all arithmetic is in
    it, and the outputs stay in it, unrounded; a `cast` still rounds its value,
    and what a convolution takes in 16 bits is rounded (docs/plan-language.md).
    Without, tensors keep their own types, results follow PyTorch's promotion,
    and outputs have the types that the plan declares.

    With `tf32_operands`, convolutions round input and weight to TF32 first:
    what the grade tf32 does at least, whatever cuDNN chooses.
    """
    if isinstance(plan, str):
        plan = parse(plan)
    values = {}
    for declared, tensor in zip(plan.inputs, tensors, strict=True):
        values[declared.name] = tensor if dtype is None else tensor.to(dtype)
    rounded = {} if dtype is None else _rounded_values(plan)
    for op in plan.ops:
        operands = [values[operand.name] if isinstance(operand, Value)
                    else operand for operand in op.operands]
        if tf32_operands and op.kind in ("conv2d", "conv_transpose2d"):
            operands[:2] = [_to_tf32(operand) for operand in operands[:2]]
        value = _apply(op.kind, operands, op.attributes, dtype)
        if op.name in rounded:
            value = _rounded(value, rounded[op.name])
        values[op.name] = value
    outputs = []
    for output in plan.outputs:
        value = values[output.name]
        if dtype is None and output.dtype is not None:
            value = value.to(DTYPES[output.dtype])
        outputs.append(value)
    return outputs


def as_function(plan):
    """A function of the plan's input tensors, for torch.compile."""
    if isinstance(plan, str):
        plan = parse(plan)
    return lambda *tensors: evaluate(plan, tensors)


def round_to(value, dtype):
    """`value` (f64) rounded once to `dtype`, ties to even, still as f64.

    PyTorch converts f64 to f16 and bf16 by way of f32 and so rounds twice.
    Here the way by f32 rounds to odd, which keeps the second rounding right
    (Boldo and Melquiond, "When double rounding is odd", 2005).
    """
    near = value.to(torch.float32)
    if dtype != torch.float32:
        bits = near.view(torch.int32)
        inexact = (near.to(torch.float64) != value) & ~torch.isnan(value)
        too_far = near.to(torch.float64).abs() > value.abs()
        other = torch.where(too_far, bits - 1, bits + 1)
        odd = torch.where(inexact & (bits % 2 == 0), other, bits)
        near = odd.view(torch.float32)
    return near.to(dtype).to(torch.float64)


def _rounded_values(plan):
    """{name: type} of the computed values that convolutions take in 16 bits.
    What no output depends on is not computed, and does not count."""
    live = _live(plan)
    types = {declared.name: declared.dtype for declared in plan.inputs}
    ranks = {declared.name: len(declared.dims) for declared in plan.inputs}
    made = {op.name for op in plan.ops}
    rounded = {}
    for op in plan.ops:
        operands = [o.name for o in op.operands if isinstance(o, Value)]
        if op.kind in ("conv2d", "conv_transpose2d"):
            both = operands[:2]
            if op.name in live and types[both[0]] == types[both[1]] != "f32":
                rounded.update({name: DTYPES[types[name]] for name in both
                                if name in made})
        types[op.name] = _nominal(op, operands, types, ranks)
        ranks[op.name] = max(ranks[name] for name in operands)
        if op.kind in _REDUCE and not op.attributes.get("keepdim", False):
            dim = op.attributes.get("dim", [])
            count = len(dim) if isinstance(dim, list) else 1
            ranks[op.name] -= count or ranks[op.name]
    return rounded


def _live(plan):
    """Names of the values that outputs depend on."""
    live = {output.name for output in plan.outputs}
    for op in reversed(plan.ops):
        if op.name in live:
            live.update(o.name for o in op.operands if isinstance(o, Value))
    return live


def _nominal(op, operands, types, ranks):
    """The nominal type of an op's result."""
    if op.kind == "cast":
        return op.attributes["dtype"]
    if op.kind in _BINARY or op.kind in ("conv2d", "conv_transpose2d"):
        promoting = [types[name] for name in operands if ranks[name] > 0]
        found = set(promoting or [types[name] for name in operands])
        return found.pop() if len(found) == 1 else "f32"
    return types[operands[0]]


def _rounded(value, dtype):
    """Rounded to `dtype`, in the type that it has."""
    return round_to(value.to(torch.float64), dtype).to(value.dtype)


def _to_tf32(value):
    """The nearest TF32 number, ties away from zero; infinities and NaNs as they
    are."""
    bits = value.to(torch.float32).view(torch.int32)
    rounded = ((bits + 0x1000) & ~0x1FFF).view(torch.float32).to(value.dtype)
    return torch.where(value.isfinite(), rounded, value)


def _apply(kind, operands, attributes, dtype):
    """The result of one op."""
    if kind in _UNARY:
        return _UNARY[kind](operands[0])
    if kind in _BINARY:
        return _binary(kind, *operands)
    if kind in _REDUCE:
        return _reduce(kind, operands[0], attributes)
    if kind == "cast":
        target = DTYPES[attributes["dtype"]]
        if dtype is None:
            return operands[0].to(target)
        return _rounded(operands[0], target)
    return _CALLS[kind](operands, _Attributes(attributes))


class _Attributes:
    """Attributes of one op by name, with their defaults."""

    def __init__(self, given):
        self._given = given

    def pair(self, name, default):
        value = self._given.get(name, default)
        value = value if isinstance(value, list) else [value]
        return value * 2 if len(value) == 1 else value

    def real(self, name, default):
        value = self._given.get(name, default)
        return None if value is None else to_f32(value)

    def plain(self, name, default=None):
        return self._given.get(name, default)


def _conv2d(operands, a):
    return F.conv2d(*operands, stride=a.pair("stride", 1),
                    padding=a.pair("padding", 0),
                    dilation=a.pair("dilation", 1),
                    groups=a.plain("groups", 1))


def _conv_transpose2d(operands, a):
    return F.conv_transpose2d(*operands, stride=a.pair("stride", 1),
                              padding=a.pair("padding", 0),
                              output_padding=a.pair("output_padding", 0),
                              groups=a.plain("groups", 1),
                              dilation=a.pair("dilation", 1))


def _group_norm(operands, a):
    value, weight, bias = operands
    # Not F.group_norm, which refuses groups of one element.
    return torch.group_norm(value, a.plain("num_groups"), weight, bias,
                            a.real("eps", 1e-5))


def _batch_norm(operands, a):
    value, mean, variance, weight, bias = operands
    return F.batch_norm(value, mean, variance, weight, bias, training=False,
                        eps=a.real("eps", 1e-5))


def _max_pool2d(operands, a):
    kernel = a.pair("kernel_size", None)
    return F.max_pool2d(operands[0], kernel, a.pair("stride", kernel),
                        a.pair("padding", 0), a.pair("dilation", 1),
                        a.plain("ceil_mode", False))


def _avg_pool2d(operands, a):
    kernel = a.pair("kernel_size", None)
    return F.avg_pool2d(operands[0], kernel, a.pair("stride", kernel),
                        a.pair("padding", 0), a.plain("ceil_mode", False),
                        a.plain("count_include_pad", True),
                        a.plain("divisor_override"))


_CALLS = {
    "conv2d": _conv2d,
    "conv_transpose2d": _conv_transpose2d,
    "group_norm": _group_norm,
    "batch_norm": _batch_norm,
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "softmax": lambda v, a: torch.softmax(v[0], a.plain("dim")),
    "leaky_relu":
        lambda v, a: F.leaky_relu(v[0], a.real("negative_slope", 0.01)),
    "gelu": lambda v, a: F.gelu(
        v[0], approximate=a.plain("approximate") or "none"),
    "hardtanh": lambda v, a: F.hardtanh(
        v[0], a.real("min_val", -1.0), a.real("max_val", 1.0)),
    "clamp": lambda v, a: torch.clamp(
        v[0], a.real("min", None), a.real("max", None)),
    "softplus": lambda v, a: F.softplus(
        v[0], a.real("beta", 1.0), a.real("threshold", 20.0)),
    "elu": lambda v, a: F.elu(v[0], a.real("alpha", 1.0)),
}


def _binary(kind, left, right):
    """One operand may be a float, which minimum and maximum do not take."""
    if kind in ("minimum", "maximum"):
        if not torch.is_tensor(left):
            left = torch.full_like(right, left)
        if not torch.is_tensor(right):
            right = torch.full_like(left, right)
    return _BINARY[kind](left, right)


def _reduce(kind, value, attributes):
    """Over `dim`, an integer or a list; all dimensions if it is empty."""
    if value.dim() == 0:
        return _REDUCE[kind](value.reshape(1), dim=[0])
    dim = attributes.get("dim")
    dim = [] if dim is None else dim if isinstance(dim, list) else [dim]
    return _REDUCE[kind](value, dim=dim or list(range(value.dim())),
                         keepdim=attributes.get("keepdim", False))
