"""The table of ops: what each is called and what it takes (docs/ops.md)."""

from __future__ import annotations

import dataclasses
from typing import Mapping

GRADES = ("fp32", "tf32")
DTYPES = ("f32", "f16", "bf16")
APPROXIMATIONS = ("none", "tanh")  # of gelu
ALIASES = {"max": "amax", "min": "amin"}


@dataclasses.dataclass(frozen=True)
class Attribute:
    """`type`: "boolean", "integer", "number" (f32), "pair" (height and width),
    "dims", "dtype" or "approximation"."""
    type: str
    is_needed: bool = False  # has no default
    may_be_none: bool = False


@dataclasses.dataclass(frozen=True)
class OpInfo:
    number: int  # of kiln::OpKind
    operands: tuple[str, ...]
    member: str | None  # of kiln.v1.Op.attributes
    attributes: Mapping[str, Attribute]
    takes_constants: bool = False


_PAIR = Attribute("pair")
_NUMBER = Attribute("number")
_BOUND = Attribute("number", may_be_none=True)

_ATTRIBUTES: dict[str | None, dict[str, Attribute]] = {
    None: {},
    "conv": {"stride": _PAIR, "padding": _PAIR, "output_padding": _PAIR,
             "dilation": _PAIR, "groups": Attribute("integer")},
    "group_norm": {"num_groups": Attribute("integer", is_needed=True),
                   "eps": _NUMBER},
    "batch_norm": {"eps": _NUMBER},
    "pool": {"kernel_size": Attribute("pair", is_needed=True),
             "stride": _PAIR, "padding": _PAIR, "dilation": _PAIR,
             "ceil_mode": Attribute("boolean"),
             "count_include_pad": Attribute("boolean"),
             "divisor_override": Attribute("integer", may_be_none=True)},
    "reduce": {"dim": Attribute("dims"), "keepdim": Attribute("boolean")},
    "softmax": {"dim": Attribute("integer", is_needed=True)},
    "leaky_relu": {"negative_slope": _NUMBER},
    "gelu": {"approximate": Attribute("approximation")},
    "clamp": {"min": _BOUND, "max": _BOUND},
    "softplus": {"beta": _NUMBER, "threshold": _NUMBER},
    "elu": {"alpha": _NUMBER},
    "cast": {"dtype": Attribute("dtype", is_needed=True)},
}


def _op(number: int, *operands: str, member: str | None = None,
        without: tuple[str, ...] = ()) -> OpInfo:
    """`without`: attributes that only another op with the same member has."""
    attributes = {name: attribute
                  for name, attribute in _ATTRIBUTES[member].items()
                  if name not in without}
    return OpInfo(number, operands or ("input",), member, attributes)


def _binary(number: int) -> OpInfo:
    return OpInfo(number, ("input", "other"), None, {}, takes_constants=True)


_CONV = ("input", "weight", "bias")

OPS: dict[str, OpInfo] = {
    "conv2d": _op(1, *_CONV, member="conv", without=("output_padding",)),
    "conv_transpose2d": _op(2, *_CONV, member="conv"),
    "group_norm": _op(10, "input", "weight", "bias", member="group_norm"),
    "batch_norm": _op(11, "input", "running_mean", "running_var", "weight",
                      "bias", member="batch_norm"),
    "max_pool2d": _op(20, member="pool", without=("count_include_pad",
                                                  "divisor_override")),
    "avg_pool2d": _op(21, member="pool", without=("dilation",)),
    "sum": _op(30, member="reduce"),
    "mean": _op(31, member="reduce"),
    "amax": _op(32, member="reduce"),
    "amin": _op(33, member="reduce"),
    "logsumexp": _op(34, member="reduce"),
    "softmax": _op(35, member="softmax"),
    "relu": _op(50),
    "leaky_relu": _op(51, member="leaky_relu"),
    "gelu": _op(52, member="gelu"),
    "tanh": _op(53),
    "sigmoid": _op(54),
    "silu": _op(55),
    "hardswish": _op(56),
    "hardsigmoid": _op(57),
    "hardtanh": OpInfo(58, ("input",), "clamp",
                       {"min_val": _BOUND, "max_val": _BOUND}),
    "clamp": _op(59, member="clamp"),
    "mish": _op(60),
    "softplus": _op(61, member="softplus"),
    "elu": _op(62, member="elu"),
    "abs": _op(63),
    "neg": _op(64),
    "exp": _op(65),
    "sqrt": _op(66),
    "add": _binary(80),
    "sub": _binary(81),
    "mul": _binary(82),
    "div": _binary(83),
    "minimum": _binary(84),
    "maximum": _binary(85),
    "cast": _op(100, member="cast"),
}
