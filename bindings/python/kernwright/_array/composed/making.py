"""Arrays made by NumPy's further functions: copies, sequences, matrices, diagonals."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from kernwright import _core
from kernwright._array.creation import _is_real, asarray, linspace
from kernwright._array.data_types import get_default_dtype
from kernwright._array.matrices import diag, eye
from kernwright._array.operands import axes_of, device_array
from kernwright._core import Array, _dtype, _result_type
from kernwright.errors import InvalidArgument

__all__ = [
    "array",
    "ascontiguousarray",
    "copy",
    "diagflat",
    "diagonal",
    "geomspace",
    "identity",
    "logspace",
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


# ---- Sequences of equal ratios


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0,
    dtype: Any = None, axis: int = 0, *, device: Any = None,
) -> Array:  # fmt: skip
    """`num` numbers from base**start to base**stop with exponents of equal distances, of the
    default dtype unless told otherwise. Computed in float64. Ends may be arrays of the device: the
    numbers lie along a new axis `axis` and have the dtype of the ends, float64 of integers.

    >>> kw.logspace(0, 2, 3).numpy()
    array([  1.,  10., 100.], dtype=float32)
    """
    import kernwright as kw

    if any(isinstance(value, Array) for value in (start, stop, base)):
        shares = _shares(num, endpoint, start, stop, base)
        made = kw.float_power(base, start + (stop - start) * shares)
        made = _exact_whole(made, _type_of_ends(dtype, start, stop, base))
        return made if axis == 0 else kw.moveaxis(made, 0, axis)
    is_whole = dtype is not None and _dtype(dtype).kind in "iu"
    if is_whole or not all(map(_is_real, (start, stop, base))):
        # Whole numbers are cut off, so that the last bit of a power counts.
        values = np.logspace(start, stop, num, endpoint=endpoint, base=base)
        return _converted(asarray(values, device=device), dtype)
    exponents = linspace(start, stop, num, dtype="float64", endpoint=endpoint, device=device)
    return _converted(kw.float_power(float(base), exponents), dtype)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None,
    axis: int = 0, *, device: Any = None,
) -> Array:  # fmt: skip
    """`num` numbers from `start` to `stop`, each the one before times the same factor, of the
    default dtype unless told otherwise. Computed in float64; ends that are numbers are exact, and
    arrays of the device may be ends, as for logspace(). InvalidArgument if an end is the number 0.

    >>> kw.geomspace(1, 8, 4).numpy()
    array([1., 2., 4., 8.], dtype=float32)
    """
    import kernwright as kw

    if any(isinstance(value, Array) for value in (start, stop)):
        shares = _shares(num, endpoint, start, stop)
        made = kw.multiply(kw.float_power(kw.divide(stop, start), shares), start)
        made = kw.where(shares == 0, start, kw.where(shares == 1, stop, made))
        made = _exact_whole(made, _type_of_ends(dtype, start, stop))
        return made if axis == 0 else kw.moveaxis(made, 0, axis)
    if np.any(np.equal(start, 0)) or np.any(np.equal(stop, 0)):
        raise InvalidArgument("geomspace() cannot begin or end at 0")
    kind = "f" if dtype is None else _dtype(dtype).kind
    if kind in "iu" or not all(map(_is_real, (start, stop))) or float(start) * float(stop) < 0:
        values = np.geomspace(start, stop, num, endpoint, complex if kind == "c" else None)
        return _converted(asarray(values, device=device), dtype)
    shares = linspace(
        0, math.log2(stop / start), num, dtype="float64", endpoint=endpoint, device=device
    )
    made = kw.exp2(shares) * float(start)
    if endpoint and num > 1:
        made[-1] = float(stop)
    return _converted(made, dtype)


def lines(
    start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int
) -> tuple[Array, Array]:
    """linspace() between arrays, and the distances of its values. Both ends are exact."""
    import kernwright as kw

    shares = _shares(num, endpoint, start, stop)
    made = kw.where(shares == 1, stop, start + kw.subtract(stop, start) * shares)
    wanted = _type_of_ends(dtype, start, stop)
    if wanted.kind in "iu" and made.dtype.kind == "f":
        made = kw.floor(made)
    made = kw.moveaxis(made.astype(wanted, copy=False), 0, axis)
    parts = num - 1 if endpoint else num
    difference: Array = kw.subtract(stop, start)
    steps = difference.astype(_type_of_ends(None, start, stop), copy=False)
    return made, kw.divide(steps, parts) if parts > 0 else kw.full_like(steps, np.nan)


def _shares(num: int, endpoint: bool, *ends: Any) -> Array:
    """From 0 to 1 along a first axis before those of arrays on the device."""
    arrays = [end for end in ends if isinstance(end, Array)]
    shares = linspace(0, 1, num, dtype="float64", endpoint=endpoint, device=arrays[0].device)
    ndim = max(array.ndim for array in arrays)
    made: Array = shares.reshape((-1,) + (1,) * ndim)
    return made


def _exact_whole(values: Array, dtype: Any) -> Array:
    """`values` in `dtype`. An integer type cuts off the fraction, but the power of a whole number
    may end a rounding error below it: such a value is rounded first."""
    import kernwright as kw

    if dtype.kind in "iu" and values.dtype.kind == "f":
        nearest = kw.rint(values)
        values = kw.where(kw.abs(values - nearest) <= 1e-13 * kw.abs(nearest), nearest, values)
    return values.astype(dtype, copy=False)


def _type_of_ends(dtype: Any, *ends: Any) -> Any:
    """The type of the arrays among the ends together, float64 of integers, unless one is named."""
    if dtype is not None:
        return _dtype(dtype)
    made = _result_type(*ends)
    return np.dtype(np.float64) if made.kind in "iub" else made


def _converted(values: Array, dtype: Any) -> Array:
    real = get_default_dtype()
    default = _result_type(real, 0j) if values.dtype.kind == "c" else real
    return values.astype(default if dtype is None else _dtype(dtype), copy=False)
