"""Triangles, diagonals, identity matrices."""

from __future__ import annotations

from typing import Any

from kernwright._array.creation import ones
from kernwright._array.operands import device_array
from kernwright._array.sorting import _whole
from kernwright._core import Array, _diagonal, _diagonal_matrix, _triangle

__all__ = ["diag", "eye", "tril", "triu"]


def tril(x: Any, /, k: int = 0) -> Array:
    """The lower triangles of the matrices in the last two axes: zero where column > row + k. A
    vector is each row of a square matrix, as in NumPy.

    >>> kw.tril(kw.asarray([[1, 2], [3, 4]])).numpy()
    array([[1, 0],
           [3, 4]])
    """
    return _triangle(_square(device_array(x)), k, False)


def triu(x: Any, /, k: int = 0) -> Array:
    """The upper triangles of the matrices in the last two axes: zero where column < row + k. A
    vector is each row of a square matrix, as in NumPy.

    >>> kw.triu(kw.asarray([[1, 2], [3, 4]])).numpy()
    array([[1, 2],
           [0, 4]])
    """
    return _triangle(_square(device_array(x)), k, True)


def _square(x: Array) -> Array:
    """A vector as all rows of a square matrix; other arrays as they are."""
    return x._broadcast((x.size, x.size)) if x.ndim == 1 else x


def diag(x: Any, /, k: int = 0) -> Array:
    """Of a vector: the square matrix with it as diagonal `k`, zero elsewhere. Of a matrix: a copy
    of its diagonal `k`. ValueError for other arrays.

    >>> kw.diag(kw.asarray([1, 2])).numpy()
    array([[1, 0],
           [0, 2]])
    >>> kw.diag(kw.asarray([[1, 2], [3, 4]])).numpy()
    array([1, 4])
    """
    x, k = device_array(x), _whole(k, "kw.diag(): k")
    if x.ndim == 1 and abs(k) < 2**63:
        return _diagonal_matrix(x, x.size + abs(k), x.size + abs(k), k)
    return _diagonal(x, k)


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = None, *, device: Any = None
) -> Array:
    """A matrix of `N` rows and `M` columns (None: as many), with ones on diagonal `k` and zeros
    elsewhere; the default dtype is that of get_default_dtype().

    >>> kw.eye(2).numpy()
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    one = ones((), dtype, device=device)
    return _diagonal_matrix(one, N, N if M is None else M, k)
