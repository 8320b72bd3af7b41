"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

from kernwright._core import Array, _reduce
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.linalg._decompose import svdvals
from kernwright.linalg._products import _matrix

__all__ = ["matrix_norm", "vector_norm"]


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


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """The norm of the matrices in the last two axes.

    `ord`: "fro" the square root of the sum of squares, 1 and -1 the largest and the smallest sum of
    absolute values of a column, inf and -inf of a row, 2 and -2 the largest and the smallest
    singular value, "nuc" their sum. Matrices without elements have 0 for "fro" and "nuc", and for
    1, inf and 2 too; the smallest of nothing is InvalidArgument.

    >>> kw.linalg.matrix_norm(kw.asarray([[3.0, 0.0], [0.0, 4.0]]), ord=2).item()
    4.0
    """
    import kernwright as kw

    x = _matrix(x)
    if not isinstance(ord, (str, int, float)):
        raise ArgumentError(f"ord is {ord!r}, and must be a number, 'fro' or 'nuc'")
    if ord in (2, -2, "nuc"):
        norm = _singular_norm(x, ord)
        return norm[..., None, None] if keepdims else norm
    if ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord not in (1, -1, math.inf, -math.inf):
        raise InvalidArgument(f"there is no matrix norm {ord!r}: 'fro', 'nuc', 1, 2, inf, -1 ...")
    size = kw.abs(x)
    inner, outer_axis = (-2, -1) if abs(ord) == 1 else (-1, -2)
    sums = kw.sum(size, axis=inner, keepdims=True, dtype=size.dtype)
    if ord > 0 and sums.shape[outer_axis] == 0:
        norm = kw.sum(sums, axis=outer_axis, keepdims=True, dtype=size.dtype)
    else:
        norm = (kw.max if ord > 0 else kw.min)(sums, axis=outer_axis, keepdims=True)
    return norm if keepdims else norm.reshape(norm.shape[:-2])


def _singular_norm(x: Array, ord: Any) -> Array:
    import kernwright as kw

    values = svdvals(x)
    if ord == "nuc":
        return kw.sum(values, axis=-1, dtype=values.dtype)
    if values.shape[-1] == 0:
        if ord == -2:
            raise InvalidArgument(f"the smallest singular value of a matrix {x.shape}: it has none")
        return kw.zeros(x.shape[:-2], values.dtype, device=x.device)
    return values[..., 0] if ord == 2 else values[..., -1]
