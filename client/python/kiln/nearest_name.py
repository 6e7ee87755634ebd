"""What a misspelt name most likely means."""

from __future__ import annotations

from typing import Iterable

# Longer names are no misspelling, and would make the distance slow.
_MAX_LENGTH_TRIED = 64


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """"; did you mean 'conv2d'?" for the first candidate of least edit
    distance (Levenshtein), if at most a third of `name` differs; or nothing."""
    nearest = ""
    least = max(1, len(name) // 3) + 1
    for candidate in candidates:
        if max(len(name), len(candidate)) > _MAX_LENGTH_TRIED:
            continue
        distance = _edit_distance(name, candidate)
        if distance < least:
            least, nearest = distance, candidate
    return f"; did you mean {nearest!r}?" if nearest else ""


def _edit_distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, right in enumerate(b, 1):
            replaced = diagonal + (left != right)
            diagonal = row[j]
            row[j] = min(replaced, row[j] + 1, row[j - 1] + 1)
    return row[-1]
