"""What singular values tell: rank, pseudoinverse, least squares, condition."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kernwright._array.data_types import _promoted
from kernwright._array.linear import matmul
from kernwright._array.manipulation import matrix_transpose
from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.linalg._decompose import svd, svdvals
from kernwright.linalg._norms import matrix_norm
from kernwright.linalg._solve import _floating, _matrices, _square

__all__ = ["cond", "lstsq", "matrix_rank", "pinv"]


class LstsqResult(NamedTuple):
    """What lstsq() returns."""

    x: Array
    residuals: Array
    rank: Array
    singular_values: Array


def _above(x: Array, values: Array, rtol: Any) -> Array:
    """Which singular values count: those above rtol times the largest."""
    import kernwright as kw

    if rtol is None:
        rtol = max(x.shape[-2:]) * float(np.finfo(values.dtype).eps)
    elif not isinstance(rtol, (int, float)):
        rtol = kw.expand_dims(device_array(rtol, "rtol").astype(values.dtype, copy=False), axis=-1)
    counts: Array = values > values[..., :1] * rtol
    return counts


def matrix_rank(x: Any, /, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    """How many singular values of the matrices (..., m, n) are above rtol times the largest: int64.

    `rtol` is a number or an array (...); by default max(m, n) times the epsilon of the dtype. `tol`
    is a bound for the values themselves. `hermitian` is NumPy's, and changes nothing.

    >>> kw.linalg.matrix_rank(kw.asarray([[1.0, 2.0], [2.0, 4.0]])).item()
    1
    """
    import kernwright as kw

    a = _matrices(x, "matrix_rank")
    values = svdvals(a)
    if tol is None:
        return kw.count_nonzero(_above(a, values, rtol), axis=-1)
    _require_one("tol", tol, rtol)
    bound = tol[..., None] if isinstance(tol, Array) and tol.ndim > 0 else tol
    return kw.count_nonzero(values > bound, axis=-1)


def _require_one(name: str, given: Any, rtol: Any) -> Any:
    """One of two names of a bound."""
    if given is not None and rtol is not None:
        raise ArgumentError(f"{name} and rtol are one argument: give one")
    return rtol if given is None else given


def pinv(x: Any, /, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    """The Moore-Penrose inverses (..., n, m) of matrices (..., m, n): V @ diag(1 / S) @ U^H of
    svd(), without the singular values that matrix_rank() does not count. `rcond` is an older name
    of `rtol`; `hermitian` is NumPy's, and changes nothing.

    >>> kw.linalg.pinv(kw.asarray([[2.0], [0.0]])).numpy().tolist()
    [[0.5, 0.0]]
    """
    import kernwright as kw

    a, rtol = _matrices(x, "pinv"), _require_one("rcond", rcond, rtol)
    u, s, vh = svd(a, full_matrices=False)
    shrunk = kw.where(_above(a, s, rtol), 1 / s, kw.zeros_like(s)).astype(a.dtype, copy=False)
    return matmul(_adjoint(vh) * shrunk[..., None, :], _adjoint(u))


def _adjoint(x: Array) -> Array:
    import kernwright as kw

    return matrix_transpose(kw.conj(x) if x.dtype.kind == "c" else x)


def lstsq(x1: Any, x2: Any, /, rcond: Any = None, *, rtol: Any = None) -> LstsqResult:
    """The x for which the length of x1 @ x - x2 is the least, and of these the shortest.

    `x1` is (..., m, n), `x2` a vector (m,) or matrices (..., m, k). Also the squares of these
    lengths (...) or (..., k), whatever the rank, the ranks, and the singular values of x1. `rtol`
    as for matrix_rank(), types as solve(); `rcond` is an older name of it.

    >>> kw.linalg.lstsq(kw.asarray([[1.0], [1.0]]), kw.asarray([1.0, 3.0])).x.shape
    (1,)
    """
    import kernwright as kw

    rtol = _require_one("rcond", rcond, rtol)
    a, b = _promoted(_matrices(x1, "lstsq", "x1"), _floating(x2, "x2"))
    vector = b.ndim == 1
    if b.ndim == 0 or b.shape[-1 if vector else -2] != a.shape[-2]:
        raise InvalidArgument(
            f"Incompatible dimensions: lstsq() of matrices {a.shape} and right sides {b.shape}"
        )
    b = b[:, None] if vector else b
    u, s, vh = svd(a, full_matrices=False)
    counts = _above(a, s, rtol)
    shrunk = kw.where(counts, 1 / s, kw.zeros_like(s)).astype(a.dtype, copy=False)
    x = matmul(_adjoint(vh), matmul(_adjoint(u), b) * shrunk[..., None])
    left = kw.abs(matmul(a, x) - b)
    residuals = kw.sum(left * left, axis=-2, dtype=left.dtype)
    if vector:
        x, residuals = x[..., 0], residuals[..., 0]
    return LstsqResult(x, residuals, kw.count_nonzero(counts, axis=-1), s)


def cond(x: Any, /, ord: Any = None) -> Array:
    """The condition of matrices (..., m, n): by default, and for 2, the largest singular value over
    the smallest, for -2 the reverse; else matrix_norm(x) times that of the inverse.

    >>> kw.linalg.cond(kw.asarray([[4.0, 0.0], [0.0, 1.0]])).item()
    4.0
    """
    if ord in (None, 2, -2):
        a = _matrices(x, "cond")
        if min(a.shape[-2:]) == 0:
            raise InvalidArgument(f"cond() of matrices without elements: the shape is {a.shape}")
        s = svdvals(a)
        return s[..., -1] / s[..., 0] if ord == -2 else s[..., 0] / s[..., -1]
    import kernwright as kw

    a = _square(x, "cond")
    return matrix_norm(a, ord=ord) * matrix_norm(kw.linalg.inv(a), ord=ord)
