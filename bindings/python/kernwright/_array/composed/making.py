"""Arrays made by NumPy's further functions: copies, sequences, matrices, diagonals."""

from __future__ import annotations

import operator
from typing import Any

from kernwright import _core
from kernwright._array.creation import asarray
from kernwright._array.matrices import diag, eye
from kernwright._array.operands import axes_of, device_array
from kernwright._core import Array
from kernwright.errors import InvalidArgument

__all__ = [
    "array",
    "ascontiguousarray",
    "copy",
    "diagflat",
    "diagonal",
    "identity",
    "tri",
    "vander",
]


def array(
    object: Any, dtype: Any = None, *, copy: bool | None = True, ndmin: int = 0, device: Any = None
) -> Array:
    """asarray(), but a copy unless told otherwise; axes of extent 1 come first up to `ndmin`.

    >>> kw.array([1, 2], ndmin=2).shape
    (1, 2)
    """
    made = asarray(object, dtype, device=device, copy=None if copy is None else bool(copy))
    missing = max(operator.index(ndmin) - made.ndim, 0)
    return made.reshape((1,) * missing + made.shape) if missing else made


def copy(x: Any) -> Array:
    """A contiguous copy on the device of `x`; host data is copied to the current device.

    >>> kw.copy(kw.asarray([1, 2])).numpy()
    array([1, 2])
    """
    return x.copy() if isinstance(x, Array) else asarray(x, copy=True)


def ascontiguousarray(x: Any, dtype: Any = None) -> Array:
    """`x` itself where it lies row by row without gaps and has the dtype and an axis, else a copy.

    >>> kw.ascontiguousarray(kw.asarray([[1, 2], [3, 4]]).T).is_contiguous
    True
    """
    made = asarray(x, dtype)
    made = made if made.ndim else made.reshape(1)
    return made if made.is_contiguous else made.copy()


def identity(n: int, dtype: Any = None, *, device: Any = None) -> Array:
    """A square matrix of ones on the diagonal, zeros elsewhere, of get_default_dtype() unless told
    otherwise.

    >>> kw.identity(2).numpy()
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype, device=device)


def tri(
    N: int, M: int | None = None, k: int = 0, dtype: Any = None, *, device: Any = None
) -> Array:
    """Ones where column <= row + k and zeros elsewhere, N by M (None: N) elements, of the default
    dtype unless told otherwise.

    >>> kw.tri(2).numpy()
    array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    import kernwright as kw

    return kw.tril(kw.ones((N, N if M is None else M), dtype, device=device), k=k)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Array:
    """The powers of a vector's elements as columns: x**(N - 1), ..., x, 1, with `increasing` the
    other way round; N is the number of elements unless given. Integers become int64.

    >>> kw.vander(kw.asarray([2, 3]), 3).numpy()
    array([[4, 2, 1],
           [9, 3, 1]])
    """
    import kernwright as kw

    values: Array = device_array(x)
    if values.ndim != 1:
        raise InvalidArgument(f"vander() takes a vector, got shape {values.shape}")
    count = values.size if N is None else operator.index(N)
    if count < 0:
        raise InvalidArgument(f"vander() with {count} columns")
    dtype = kw.promote_types(values.dtype, "int64") if values.dtype.kind in "iub" else values.dtype
    first = kw.ones((values.size, min(count, 1)), dtype, device=values.device)
    rest = values.astype(dtype, copy=False)[:, None]._broadcast((values.size, max(count - 1, 0)))
    powers = kw.cumulative_prod(kw.concat([first, rest], axis=1), axis=1, dtype=dtype)
    return powers if increasing else kw.flip(powers, axis=1)


def diagflat(x: Any, k: int = 0) -> Array:
    """The square matrix with all elements of `x`, row by row, on diagonal `k`.

    >>> kw.diagflat(kw.asarray([[1, 2]])).numpy()
    array([[1, 0],
           [0, 2]])
    """
    return diag(device_array(x).reshape(-1), k=k)


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """A view of the elements whose positions along axis2 are those along axis1 plus `offset`, as
    the last axis. InvalidArgument for fewer than two axes.

    >>> kw.diagonal(kw.asarray([[1, 2], [3, 4]])).numpy()
    array([1, 4])
    """
    values: Array = device_array(x)
    if values.ndim < 2:
        raise InvalidArgument(f"a diagonal needs two axes or more, got shape {values.shape}")
    first, second = axes_of((axis1, axis2), values.ndim)
    return _core._diagonal_view(values, operator.index(offset), first, second)


def sum_of_diagonal(
    x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None,
    out: Array | None = None,
) -> Array:  # fmt: skip
    """kw.trace() of an array."""
    import kernwright as kw

    return kw.sum(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype, out=out)
