"""What may follow a text: copied from where its last tokens stood before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["following"]


def following(text: Sequence[int], count: int, shortest: int, longest: int) -> list[int]:
    """`count` tokens that may follow `text`, or none: those behind an earlier place of its last
    tokens. The longest match of `shortest` to `longest` tokens counts, and of equal ones the
    latest; where the text ends, it goes on with what was copied."""
    tokens = np.asarray(text, np.int32)
    size, same = len(tokens), 0
    ends = found = np.arange(1, size)
    while len(ends) and same < longest:
        found = ends
        same += 1
        ends = ends[(ends >= same) & (tokens[ends - same] == tokens[size - same])]
    if len(ends) == 0:
        same -= 1
        ends = found
    if same < shortest or not len(ends):
        return []
    end = int(ends[-1])
    return [int(tokens[end + i % (size - end)]) for i in range(count)]
