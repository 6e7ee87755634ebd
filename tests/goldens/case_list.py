"""Reads the case lists in cases/*.plan; needs no PyTorch.

A list holds blocks. A block is a header line, then plan text (grammar:
docs/plan-language.md) mixed with two kinds of lines that are not plan text:

    == conv2d_stride_{stride}_{dtype}
    for stride in 1 2 [2,1]
    for dtype in f32 f16
    data x: normal(0, 1) 7=nan 40=-inf
    input x: {dtype}[1,2,5,5]
    ...

`for` lines multiply the block: one case per combination, with {name} replaced
everywhere. `data` lines say how an input is filled; the default is
normal(0, 1). Fills, in row-major order, before rounding to the input's type:

    normal(mean, std)   uniform(low, high)   values(a, b, ...), repeated

and then single elements by index.
"""

import dataclasses
import itertools
import math
import pathlib
import random
import re

_DATA = re.compile(r"(\w+)\(([^)]*)\)(.*)")
_DEFAULT_FILL = "normal(0, 1)"


@dataclasses.dataclass
class Case:
    name: str  # unique over all lists
    plan: str  # plan text
    fills: dict  # of input name: fill expression


def read_all():
    """Every case of every list, in order of file name and place."""
    folder = pathlib.Path(__file__).parent / "cases"
    cases = [case for path in sorted(folder.glob("*.plan"))
             for case in _read(path.read_text())]
    names = [case.name for case in cases]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise ValueError(f"case names are not unique: {sorted(repeated)}")
    return cases


def fill(case, input_name, count):
    """`count` floats for one input; the same in every run."""
    expression = case.fills.get(input_name, _DEFAULT_FILL)
    kind, arguments, places = _DATA.fullmatch(expression).groups()
    arguments = [float(a) for a in arguments.split(",")]
    source = random.Random(f"{case.name}/{input_name}")
    if kind == "normal":
        result = [source.gauss(*arguments) for _ in range(count)]
    elif kind == "uniform":
        result = [source.uniform(*arguments) for _ in range(count)]
    elif kind == "values":
        repeats = math.ceil(count / len(arguments))
        result = (arguments * repeats)[:count]
    else:
        raise ValueError(f"{case.name}: no fill is called {kind}")
    for place in places.split():
        index, value = place.split("=")
        result[int(index)] = float(value)
    return result


def _read(text):
    blocks = re.split(r"^== *", text, flags=re.MULTILINE)
    for block in blocks[1:]:
        yield from _expand(block)


def _expand(block):
    axes, lines = [], []
    for line in block.strip().splitlines():
        match = re.fullmatch(r"for (\w+) in (.+)", line)
        if match:
            axes.append([(match[1], word) for word in match[2].split()])
        else:
            lines.append(line)
    for choice in itertools.product(*axes):
        expanded = "\n".join(lines)
        for name, word in choice:
            expanded = expanded.replace("{" + name + "}", word)
        yield _case(expanded)


def _case(block):
    name, *lines = block.splitlines()
    fills, plan = {}, []
    for line in lines:
        if line.startswith("data "):
            target, expression = line[len("data "):].split(":", 1)
            fills[target.strip()] = expression.strip()
        elif line and not line.startswith("#"):
            plan.append(line)
    return Case(name, "\n".join(plan) + "\n", fills)
