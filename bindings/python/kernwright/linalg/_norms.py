"""Norms of vectors."""

from __future__ import annotations

import math
from typing import Any

from kernwright._core import Array, _reduce
from kernwright.errors import ArgumentError

__all__ = ["vector_norm"]


def vector_norm(
    x: Any, /, axis: Any = None, *, keepdims: bool = False, ord: Any = 2,
    out: Array | None = None,
) -> Array:  # fmt: skip
    """The norm of the vectors along `axis` (an int, a tuple, or None for all elements).

    `ord`: 1 sum(abs(x)), 2 sqrt(sum(abs(x) ** 2)), inf max(abs(x)), -inf min(abs(x)), 0 the number
    of elements that are not 0, any other number p sum(abs(x) ** p) ** (1 / p). The result is real,
    a float64 of integers, else of the dtype of `x`. ValueError where inf or -inf has no elements.

    >>> kw.linalg.vector_norm(kw.asarray([3.0, 4.0])).item()
    5.0
    """
    if isinstance(ord, (str, bytes)) or not hasattr(ord, "__float__"):
        raise ArgumentError(f"ord is {ord!r}, and must be a number, inf or -inf")
    order = float(ord)
    names = {
        0.0: "norm_zero",
        1.0: "norm_one",
        2.0: "norm_two",
        math.inf: "norm_largest",
        -math.inf: "norm_smallest",
    }
    name = names.get(order, "norm_any")
    return _reduce(name, x, axis, keepdims, None, order, out)
