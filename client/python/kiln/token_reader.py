"""Reads the tokens of plan text, and the literals that stand in it."""

from __future__ import annotations

import fractions
import math
import re
import struct

from kiln.plan_lexer import Token, split
from kiln.plan_ops import APPROXIMATIONS, DTYPES, Attribute

_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")
_DECIMAL = re.compile(r"""
    [+-]?(?:(?P<digits>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)? |
            inf(?:inity)? | nan)""", re.VERBOSE | re.IGNORECASE)
_HEXADECIMAL = re.compile(r"""
    [+-]?0x(?P<digits>[0-9a-f]+(?:\.[0-9a-f]*)?|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?""",
    re.VERBOSE | re.IGNORECASE)


def to_f32(value: float) -> float:
    """`value` rounded to f32, which attributes and constants are in a plan.
    Raises OverflowError beyond its range."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


class TokenReader:
    """Reads tokens in order. Everything raises PlanError."""

    def __init__(self, text: str):
        self._tokens = list(split(text))
        self._position = 0

    def peek(self, ahead: int = 0) -> Token:
        """The next token, or one of those behind it; the end repeats."""
        return self._tokens[min(self._position + ahead, len(self._tokens) - 1)]

    def next(self) -> Token:
        token = self.peek()
        self._position += 1
        return token

    def next_is(self, punct: str, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token.kind == "punct" and token.text == punct

    def skip(self, *words: str) -> bool:
        """Skips the next token if it is one of `words`."""
        found = self.peek().text in words
        self._position += found
        return found

    def expect(self, punct: str) -> None:
        if not self.skip(punct):
            self.peek().fail("unexpected token", f"'{punct}'")

    def name(self, what: str) -> Token:
        if self.peek().kind != "name":
            self.peek().fail("unexpected token", what)
        return self.next()

    def end_of_line(self) -> None:
        if self.peek().kind not in ("newline", "end"):
            self.peek().fail("unexpected token", "the end of the line")
        self.next()

    def skip_none(self) -> bool:
        return self.skip("none", "None")

    def next_is_number(self) -> bool:
        token = self.peek()
        return token.kind == "number" or token.text in ("inf", "nan")

    def attribute(self, attribute: Attribute) -> object:
        """A literal of the attribute's type: bool, int, float or str; an int
        or a list of them for a pair and dims."""
        if attribute.may_be_none and self.skip_none():
            return None
        value: object = getattr(self, attribute.type)()
        return value

    def boolean(self) -> bool:
        if self.peek().text not in ("true", "True", "false", "False"):
            self.peek().fail("unexpected token", "true or false")
        return self.next().text in ("true", "True")

    def integer(self) -> int:
        match = _INTEGER.fullmatch(self.peek().text)
        value = int(match[1] + match[2]) if match else 1 << 63
        if not -1 << 63 <= value < 1 << 63:
            self.peek().fail("unexpected token", "a 64-bit integer")
        self.next()
        return value

    def number(self) -> float:
        try:
            value = _f32(self.peek().text) if self.next_is_number() else None
        except OverflowError:
            self.peek().fail("does not fit f32",
                             "a number within the range of f32")
        if value is None:
            self.peek().fail("unexpected token", "a number")
        self.next()
        return value

    def pair(self) -> int | list[int]:
        start = self.peek()
        value = self.dims()
        if isinstance(value, list) and not 1 <= len(value) <= 2:
            start.fail("has the wrong number of entries",
                       "one number, or two for height and width",
                       len(value) if start.kind == "punct" else None)
        return value

    def dims(self) -> int | list[int]:
        if self.skip_none():
            return []
        if self.skip("["):
            return self._list("]")
        return self._list(")") if self.skip("(") else self.integer()

    def dtype(self) -> str:
        if self.peek().text not in DTYPES:
            self.peek().fail("is not a data type", "f32, f16 or bf16")
        return self.next().text

    def approximation(self) -> str:
        if self.peek().text not in APPROXIMATIONS:
            self.peek().fail("is not an approximation of gelu", "none or tanh")
        return self.next().text

    def extents(self) -> list[int]:
        """"[2,3]" behind a type; "[]" is a scalar."""
        self.expect("[")
        return self._list("]")

    def _list(self, close: str) -> list[int]:
        entries = []
        while not self.next_is(close):
            entries.append(self.integer())
            if not self.skip(","):
                break
        self.expect(close)
        return entries


def _without_tie(text: str) -> float:
    """The number that decimal `text` spells, rounded to double; where that is
    half way between two f32 and the number is not, the next double."""
    value = float(text)
    if not math.isfinite(value) or value == 0:
        return value
    # An f32 has 24 bits, so what lies half way has 25.
    mantissa = math.frexp(value)[0] * 2**25
    if not mantissa.is_integer() or mantissa % 2 == 0:
        return value
    exact = fractions.Fraction(text)
    if exact == fractions.Fraction(value):
        return value
    return math.nextafter(value, math.inf if exact > value else -math.inf)


def _f32(text: str) -> float | None:
    """The f32 that `text` spells, or None. Raises OverflowError for one beyond
    f32, those too small for it included."""
    if match := _HEXADECIMAL.fullmatch(text):
        value = float.fromhex(text)
    elif match := _DECIMAL.fullmatch(text):
        value = _without_tie(text)
    else:
        return None
    digits = match["digits"]
    rounded = to_f32(value)
    is_finite = digits is None or abs(value) != float("inf")
    vanishes = digits is not None and rounded == 0 and digits.strip("0.") != ""
    if vanishes or not is_finite:
        raise OverflowError
    return rounded
