"""Systems of equations, inverses and determinants."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kernwright._array.data_types import _promoted
from kernwright._array.manipulation import matrix_transpose
from kernwright._array.operands import common_shape, device_array
from kernwright._core import Array, _cholesky, _diagonal_view, _lu_factor, _lu_solve
from kernwright.errors import InvalidArgument

__all__ = ["cholesky", "det", "inv", "slogdet", "solve"]


class SlogdetResult(NamedTuple):
    """What slogdet() returns."""

    sign: Array
    logabsdet: Array


def _floating(value: Any, name: str = "x") -> Array:
    """The array; integers and bools as float64."""
    x: Array = device_array(value, name)
    return x.astype("float64") if x.dtype.kind in "biu" else x


def _matrices(value: Any, function: str, name: str = "x") -> Array:
    x = _floating(value, name)
    if x.ndim < 2:
        raise InvalidArgument(
            f"{function}() takes matrices, which have two dimensions or more; {name} has the shape "
            f"{x.shape}"
        )
    return x


def _square(value: Any, function: str, name: str = "x") -> Array:
    x = _matrices(value, function, name)
    if x.shape[-1] != x.shape[-2]:
        raise InvalidArgument(
            f"Incompatible dimensions: {function}() takes square matrices, and {name} has the "
            f"shape {x.shape}"
        )
    return x


def _refuse(info: Array, function: str, what: str) -> None:
    """Copies what the kernel found to the host, and names the first matrix at fault."""
    found = info.numpy()
    bad = np.argwhere(found)
    if len(bad) == 0:
        return
    first = tuple(int(i) for i in bad[0])
    where = f"matrix {first} of {found.shape}" if first else "the matrix"
    raise InvalidArgument(
        f"{function}(): {where} {what.format(int(found[first]) - 1)} ({len(bad)} of {found.size})"
    )


_SINGULAR = "is singular: its factor U has 0 at [{0}, {0}]"


def solve(x1: Any, x2: Any, /, *, check: bool = False) -> Array:
    """The x of x1 @ x = x2, for square matrices (..., n, n), by Gaussian elimination with partial
    pivoting.

    `x2` is a vector (n,), or matrices (..., n, k); the dimensions in front are broadcast. float32,
    float64, complex64, complex128, promoted to one; integers as float64. A singular matrix gives
    infinities or NaN; with `check` it raises InvalidArgument, which takes a copy of one number a
    matrix to the host, and so waits for the device.

    >>> kw.linalg.solve(kw.asarray([[4.0]]), kw.asarray([1.0])).numpy().tolist()
    [0.25]
    """
    import kernwright as kw

    a, b = _promoted(_square(x1, "solve", "x1"), _floating(x2, "x2"))
    vector = b.ndim == 1
    if b.ndim == 0 or b.shape[-1 if vector else -2] != a.shape[-1]:
        raise InvalidArgument(
            f"Incompatible dimensions: solve() of matrices {a.shape} and right sides {b.shape}"
        )
    factors, pivots, info = _lu_factor(a)
    if check:
        _refuse(info, "solve", _SINGULAR)
    if vector:
        b = b[:, None]
    batch, n = common_shape(a.shape[:-2], b.shape[:-2]), a.shape[-1]
    x = _lu_solve(
        kw.broadcast_to(factors, (*batch, n, n)),
        kw.broadcast_to(pivots, (*batch, n)),
        kw.broadcast_to(b, (*batch, *b.shape[-2:])),
    )
    return x[..., 0] if vector else x


def inv(x: Any, /, *, check: bool = False) -> Array:
    """The inverses of square matrices (..., n, n). As solve() for types, singular matrices and
    `check`.

    >>> kw.linalg.inv(kw.asarray([[2.0, 0.0], [0.0, 4.0]])).numpy().tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    import kernwright as kw

    a = _square(x, "inv")
    factors, pivots, info = _lu_factor(a)
    if check:
        _refuse(info, "inv", _SINGULAR)
    one = kw.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    return _lu_solve(factors, pivots, kw.broadcast_to(one, a.shape))


def _factors(x: Array) -> tuple[Array, Array]:
    """The diagonal of U, and 1 or -1 by the number of rows that were exchanged."""
    import kernwright as kw

    factors, pivots, _ = _lu_factor(x)
    places = kw.cumsum(kw.ones_like(pivots), -1, "int32") - 1
    moved = kw.count_nonzero(pivots != places, axis=-1)
    diagonal = _diagonal_view(factors, 0, factors.ndim - 2, factors.ndim - 1)
    return diagonal, (1 - 2 * (moved % 2)).astype(x.dtype)


def det(x: Any, /) -> Array:
    """The determinants of square matrices (..., n, n): 1 for n = 0. Types as solve(). The gradient
    is the adjugate's: finite for singular matrices, too, and so is the second; a third is refused.

    >>> kw.linalg.det(kw.asarray([[1.0, 2.0], [3.0, 4.0]], "float64")).item()
    -2.0
    """
    import kernwright as kw

    a = _square(x, "det")
    pivots, sign = _factors(a)
    return kw.prod(pivots, axis=-1, dtype=a.dtype) * sign


def slogdet(x: Any, /) -> SlogdetResult:
    """sign and logabsdet with det(x) = sign * exp(logabsdet), where det() could overflow. A
    singular matrix has 0 and -inf, and a gradient that is not finite (take det() there); the sign
    of a complex one lies on the unit circle.

    >>> kw.linalg.slogdet(kw.asarray([[0.0, 1.0], [1.0, 0.0]])).sign.item()
    -1.0
    """
    import kernwright as kw

    a = _square(x, "slogdet")
    pivots, sign = _factors(a)
    size = kw.log(kw.abs(pivots))
    return SlogdetResult(
        kw.prod(kw.sign(pivots), axis=-1, dtype=a.dtype) * sign,
        kw.sum(size, axis=-1, dtype=size.dtype),
    )


def cholesky(x: Any, /, *, upper: bool = False, check: bool = False) -> Array:
    """L with x = L @ L^H and 0 above the diagonal, for positive definite matrices (..., n, n); with
    `upper` the U with x = U^H @ U.

    Only that triangle of x is read. A matrix that is not positive definite gives NaN. With `check`
    it raises InvalidArgument; this copies one number a matrix to the host. Types as solve().

    >>> kw.linalg.cholesky(kw.asarray([[4.0, 0.0], [0.0, 9.0]])).numpy().tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    a = _square(x, "cholesky")
    # The transpose is the conjugate: its factor is that of U.
    factor, info = _cholesky(matrix_transpose(a) if upper else a)
    if check:
        _refuse(info, "cholesky", "is not positive definite: its part up to [{0}, {0}] is not")
    return matrix_transpose(factor).copy() if upper else factor
