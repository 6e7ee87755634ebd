"""Splits plan text into tokens."""

from __future__ import annotations

import re
from typing import Iterator, NamedTuple, NoReturn

from kiln.errors import PlanError

_MAX_SHOWN = 64

# Numbers are checked when they are read. An exponent may have a sign.
_TOKEN = re.compile(r"""
    (?P<blank>[ \t\r]+ | \#[^\n]*) | (?P<newline>\n) |
    (?P<name>[A-Za-z_][A-Za-z0-9_.\-]*) |
    (?P<number>[+-]?0[xX](?:[pP][+-]?|[A-Za-z0-9_.])* |
               [+\-.0-9](?:[eE][+-]?|[A-Za-z0-9_.])*) |
    (?P<punct>[=()\[\],:])
    """, re.VERBOSE)


class Token(NamedTuple):
    kind: str  # "name", "number", "punct", "newline" or, once and last, "end"
    text: str
    line: int  # from 1
    column: int  # in bytes, from 1

    def __str__(self) -> str:
        if self.kind == "newline":
            return "the end of the line"
        if self.kind == "end":
            return "the end of the text"
        shown = self.text[:_MAX_SHOWN]
        return f"'{shown}{'...' if shown != self.text else ''}'"

    def fail(self, problem: str, limit: str, value: object = None) -> NoReturn:
        """Raises the PlanError of this token; `value`: what it gives, if that
        is not its text."""
        raise PlanError(f"line {self.line}, column {self.column}", problem,
                        str(self if value is None else value), limit)


def split(text: str) -> Iterator[Token]:
    """The tokens of `text`, without comments and blanks. A newline ends a line
    that has tokens and is not inside brackets."""
    # A character per byte: columns count bytes.
    text = text.encode(errors="surrogatepass").decode("latin-1")
    depth, line, line_start, position = 0, 1, 0, 0
    line_has_tokens = False
    while match := _TOKEN.match(text, position):
        kind = str(match.lastgroup)
        token = Token(kind, match.group(), line, position - line_start + 1)
        position = match.end()
        if kind == "newline":
            if depth == 0 and line_has_tokens:
                yield token
                line_has_tokens = False
            line, line_start = line + 1, position
        elif kind != "blank":
            depth = max(0, depth + (token.text in "([") - (token.text in ")]"))
            line_has_tokens = True
            yield token
    end = Token("end", "", line, position - line_start + 1)
    if position < len(text):
        end.fail("no token starts here", "a name, a number or one of "
                 "= ( ) [ ] , : #", f"byte 0x{ord(text[position]):02x}")
    if line_has_tokens:
        yield end._replace(kind="newline")
    yield end
