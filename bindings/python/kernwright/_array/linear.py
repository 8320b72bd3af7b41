"""Products: of matrices, of vectors, over axes."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from kernwright import _core
from kernwright._array.data_types import _promoted
from kernwright._array.operands import stored
from kernwright._core import Array
from kernwright.errors import InvalidArgument

__all__ = ["matmul", "tensordot", "vecdot"]


def matmul(
    x1: Array,
    x2: Array,
    /,
    out: Array | None = None,
    *,
    precision: Literal["float32", "tf32"] | None = None,
    tune: bool = False,
) -> Array:
    """x1 @ x2: [..., m, k] times [..., k, n] is [..., m, n]. The dimensions in front are broadcast.
    A vector counts as one row on the left and as one column on the right; the result does not have
    that dimension.

    Types are promoted as NumPy's. Floats below 32 bits are summed in float32, in an order that the
    shapes decide: the same bits in each run. From compute capability 8.0 on float32 and float64
    round each product once, when it is added. precision="tf32" allows products of float32 to round
    their operands to 11 bits for the tensor cores; few rows, or one column, of a large one do not.

    The kernel and its tiles are those that the table of the device has for the shape, else those of
    a rule. `tune` measures all kernels for this shape in the first call; this takes a moment. The
    choice is kept in the user's table on disk. Later calls use it without `tune`, in other
    processes too. See kw.tune.products(). `out` takes the result, by a copy: it has the result's
    shape and a type of its kind. InvalidArgument for a number without dimensions and for shapes
    that do not fit, ArgumentError for another precision, and tf32 of another type.

    >>> a, b = kw.asarray([[1, 2], [3, 4]]), kw.asarray([10, 1])
    >>> kw.matmul(a, b).numpy()
    array([12, 34])
    """
    left, right = _promoted(x1, x2)
    if left.ndim == 0 or right.ndim == 0:
        raise InvalidArgument(
            f"Incompatible dimensions for a matrix product: {left.shape} and {right.shape}; "
            "multiply by a number with *"
        )
    is_row, is_column = left.ndim == 1, right.ndim == 1
    a, b = left[None, :] if is_row else left, right[:, None] if is_column else right
    result = _core._matmul(a, b, precision)
    if tune:
        from kernwright._measure.product_plans import tune_product

        tune_product(a, b, lambda: _core._matmul(a, b, precision), precision)
        result = _core._matmul(a, b, precision)
    if is_column:
        result = result.reshape(result.shape[:-1])
    if is_row:
        at = result.ndim - (1 if is_column else 2)
        result = result.reshape(result.shape[:at] + result.shape[at + 1 :])
    return result if out is None else stored(result, out)


def _axes_of(axes: Any, x1: Array, x2: Array) -> tuple[list[int], list[int]]:
    if isinstance(axes, (int, np.integer)):
        if axes < 0 or axes > min(x1.ndim, x2.ndim):
            raise InvalidArgument(
                f"tensordot() over {axes} axes of arrays with {x1.ndim} and {x2.ndim} dimensions"
            )
        return list(range(x1.ndim - int(axes), x1.ndim)), list(range(int(axes)))
    first, second = (list(part) if not isinstance(part, int) else [part] for part in axes)
    if len(first) != len(second):
        raise InvalidArgument(f"tensordot() over {len(first)} axes here and {len(second)} there")
    return _normalized(first, x1.ndim), _normalized(second, x2.ndim)


def _normalized(axes: list[int], ndim: int) -> list[int]:
    result = []
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise InvalidArgument(f"axis {axis} is out of bounds for {ndim} dimensions")
        result.append(int(axis) % ndim)
    if len(set(result)) != len(result):
        raise InvalidArgument(f"an axis is named twice: {tuple(axes)}")
    return result


def tensordot(x1: Array, x2: Array, /, axes: Any = 2) -> Array:
    """The sum of products over the last `axes` axes of x1 and the first of x2, or over a pair of
    sequences of axes. What is left of x1's axes comes first, then x2's.

    >>> kw.tensordot(kw.ones((2, 3, 4)), kw.ones((3, 4, 5))).shape
    (2, 5)
    """
    left, right = _promoted(x1, x2)
    first, second = _axes_of(axes, left, right)
    if [left.shape[a] for a in first] != [right.shape[a] for a in second]:
        raise InvalidArgument(
            f"Incompatible dimensions for tensordot(): {left.shape} over axes {tuple(first)} and "
            f"{right.shape} over axes {tuple(second)}"
        )
    kept_first = [a for a in range(left.ndim) if a not in first]
    kept_second = [a for a in range(right.ndim) if a not in second]
    shape = tuple(left.shape[a] for a in kept_first) + tuple(right.shape[a] for a in kept_second)
    inner = math.prod(left.shape[a] for a in first)
    rows = math.prod(left.shape[a] for a in kept_first)
    columns = math.prod(right.shape[a] for a in kept_second)
    a = left.transpose(*kept_first, *first).reshape(rows, inner) if left.ndim else _matrix(left)
    b = (
        right.transpose(*second, *kept_second).reshape(inner, columns)
        if right.ndim
        else _matrix(right)
    )
    return _core._matmul(a, b).reshape(shape)


def _matrix(x: Array) -> Array:
    return x.reshape(1, 1)


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The sum of conj(x1) * x2 over one axis, counted from the end; the others are broadcast.

    >>> kw.vecdot(kw.asarray([1, 2, 3]), kw.asarray([10, 1, 0])).item()
    12
    """
    import kernwright as kw

    left, right = _promoted(x1, x2)
    if not -min(left.ndim, right.ndim) <= axis < 0 and not (
        left.ndim == right.ndim and 0 <= axis < left.ndim
    ):
        raise InvalidArgument(
            f"axis {axis} is out of bounds for vecdot() of {left.shape} and {right.shape}"
        )
    if left.shape[axis] != right.shape[axis]:
        raise InvalidArgument(
            f"Incompatible dimensions for vecdot(): {left.shape} and {right.shape} along {axis}"
        )
    left, right = _last(left, axis), _last(right, axis)
    if left.dtype.kind == "c":
        left = kw.conj(left)
    product = _core._matmul(left[..., None, :], right[..., :, None])
    return product.reshape(product.shape[:-2])


def _last(x: Array, axis: int) -> Array:
    axis %= x.ndim
    return x.transpose(*(a for a in range(x.ndim) if a != axis), axis)
