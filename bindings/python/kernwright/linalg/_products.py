"""Products, powers and diagonals of matrices."""

from __future__ import annotations

from typing import Any

from kernwright import _core
from kernwright._array.data_types import _promoted
from kernwright._array.linear import matmul, tensordot, vecdot
from kernwright._array.manipulation import matrix_transpose
from kernwright._array.operands import axis_of, device_array
from kernwright._core import Array
from kernwright.errors import InvalidArgument

__all__ = [
    "cross",
    "diagonal",
    "matmul",
    "matrix_power",
    "matrix_transpose",
    "outer",
    "tensordot",
    "trace",
    "vecdot",
]


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of three elements along `axis`; the others are broadcast.

    >>> kw.linalg.cross(kw.asarray([1, 0, 0]), kw.asarray([0, 1, 0])).numpy()
    array([0, 0, 1])
    """
    import kernwright as kw

    a, b = _promoted(x1, x2)
    axis_of(axis, a.ndim), axis_of(axis, b.ndim)
    if a.shape[axis] != 3 or b.shape[axis] != 3:
        raise InvalidArgument(
            f"Incompatible dimensions for cross(): {a.shape} and {b.shape}, and axis {axis} must "
            "have 3 elements in both"
        )
    a, b = kw.moveaxis(a, axis, -1), kw.moveaxis(b, axis, -1)
    parts = [a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return kw.moveaxis(kw.stack(parts, axis=-1), -1, axis)


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """A view of the elements [..., i, i + offset], as the last axis.

    >>> kw.linalg.diagonal(kw.asarray([[1, 2], [3, 4]])).numpy()
    array([1, 4])
    """
    x = _matrix(x)
    return _core._diagonal_view(x, offset, x.ndim - 2, x.ndim - 1)


def _matrix(value: Any) -> Array:
    x: Array = device_array(value)
    if x.ndim < 2:
        raise InvalidArgument(f"a matrix has two dimensions or more, and this has shape {x.shape}")
    return x


def trace(x: Array, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sum of the diagonal.

    >>> kw.linalg.trace(kw.asarray([[1, 2], [3, 4]])).item()
    5
    """
    import kernwright as kw

    return kw.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def outer(x1: Array, x2: Array, /) -> Array:
    """All products of an element of one vector with an element of the other.

    >>> kw.linalg.outer(kw.asarray([1, 2]), kw.asarray([10, 1])).numpy()
    array([[10,  1],
           [20,  2]])
    """
    a, b = _promoted(x1, x2)
    if a.ndim != 1 or b.ndim != 1:
        raise InvalidArgument(f"outer() takes two vectors, got shapes {a.shape} and {b.shape}")
    return a[:, None] * b[None, :]


def matrix_power(x: Array, n: int, /) -> Array:
    """x @ x @ ... n times, by squaring; n = 0 gives the identity, n < 0 powers of inv(x).

    >>> kw.linalg.matrix_power(kw.asarray([[1, 1], [0, 1]]), 3).numpy()
    array([[1, 3],
           [0, 1]])
    """
    import kernwright as kw

    x = _matrix(x)
    if x.shape[-1] != x.shape[-2]:
        raise InvalidArgument(f"only square matrices have powers, this has shape {x.shape}")
    if n < 0:
        x, n = kw.linalg.inv(x), -n
    power = kw.broadcast_to(kw.eye(x.shape[-1], dtype=x.dtype, device=x.device), x.shape)
    square = x
    while n:
        if n & 1:
            power = matmul(power, square)
        n >>= 1
        if n:
            square = matmul(square, square)
    return power.copy() if power is not x else x
