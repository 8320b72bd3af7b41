"""Convolutions and correlations of vectors: summed directly, or by transforms where both are long.

The direct kernel has a thread for each element of the result, which adds products in one order:
integers are exact (they wrap around), and the same call gives the same bits. Floating vectors of
which the shorter one has 2048 elements or more go through FFTs, whose error is relative to the
largest elements. float16, bfloat16 and the 8-bit floats are added up in float32.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from kernwright._array.data_types import _promoted
from kernwright._array.operands import device_array
from kernwright._core import Array, empty
from kernwright.errors import InvalidArgument

__all__ = ["convolve", "correlate"]

_MODES = ("full", "same", "valid")
_TRANSFORMED = 2048  # elements of the shorter vector from which on transforms are used
# y[i] of the result is element i + start of the full convolution; m <= n elements.
_CODE = """
const Int64 place = i + start;
const Int64 first = place < n_long ? 0 : place - n_long + 1;
const Int64 last = place < n_short ? place : n_short - 1;
SUM total = 0;
for (Int64 k = first; k <= last; ++k) total += SUM(a[place - k]) * SUM(v[k]);
y = total;
"""


@functools.cache
def _direct(dtype: str) -> Any:
    from kernwright._fuse.elementwise import ElementwiseKernel

    sums = {"float64": "double", "bool": "bool"}
    sum_type = sums.get(dtype, "UInt64" if "int" in dtype else "float")
    code = _CODE.replace("SUM", sum_type)
    if dtype == "bool":
        code = code.replace("total +=", "total |=")
    inputs = "raw T a, raw T v, int64 n_long, int64 n_short, int64 start"
    return ElementwiseKernel(inputs, "T y", code, "convolve")


def convolve(a: Any, v: Any, mode: str = "full") -> Array:
    """The convolution of two vectors: result[k] is the sum of a[k - j] * v[j].

    mode: "full" (n + m - 1 elements), "same" (as many as the longer one, from the middle), "valid"
    (where both overlap fully). Types are promoted as NumPy's. InvalidArgument for an empty vector,
    other arrays than vectors, and another mode.

    >>> kw.convolve(kw.asarray([1, 2, 3]), kw.asarray([0, 1, 10])).numpy()
    array([ 0,  1, 12, 23, 30])
    """
    x, y = _vectors(a, v, "convolve")
    if y.size > x.size:
        x, y = y, x
    start, count = part_of(x.size, y.size, mode, False)
    return _convolved(x, y, start, count)


def correlate(a: Any, v: Any, mode: str = "valid") -> Array:
    """The correlation of two vectors: result[k] is the sum of a[k + j] * conj(v[j]); modes and
    errors as for convolve().

    >>> kw.correlate(kw.asarray([1, 2, 3]), kw.asarray([0, 1, 10]), "same").numpy()
    array([21, 32,  3])
    """
    import kernwright as kw

    x, y = _vectors(a, v, "correlate")
    y = kw.flip(kw.conj(y) if y.dtype.kind == "c" else y)
    swapped = y.size > x.size
    if swapped:
        x, y = y, x
    start, count = part_of(x.size, y.size, mode, swapped)
    return _convolved(x, y, start, count)


def _vectors(a: Any, v: Any, name: str) -> tuple[Array, Array]:
    x, y = _promoted(device_array(a, "a"), device_array(v, "v"))
    for given, called in ((x, "a"), (y, "v")):
        if given.ndim > 1 or given.size == 0:
            raise InvalidArgument(
                f"{name}() takes vectors that are not empty, got {called} of shape {given.shape}"
            )
    return x.reshape(-1), y.reshape(-1)


def part_of(long: int, short: int, mode: str, swapped: bool) -> tuple[int, int]:
    """The first element of the full result, and how many."""
    if mode not in _MODES:
        raise InvalidArgument(f"mode is {', '.join(map(repr, _MODES))}, got {mode!r}")
    if mode == "full":
        return 0, long + short - 1
    if mode == "valid":
        return short - 1, long - short + 1
    return (short // 2 if swapped else (short - 1) // 2), long


def _convolved(x: Array, y: Array, start: int, count: int) -> Array:
    if x.dtype.kind not in "iub" and y.size >= _TRANSFORMED:
        return _by_transforms(x, y, start, count)
    if x.dtype.kind == "c":
        return _complex(x, y, start, count)
    result = empty((count,), x.dtype, device=x.device)
    with x.device:
        _direct(x.dtype.name)(
            _packed(x), _packed(y), np.int64(x.size), np.int64(y.size), np.int64(start), result
        )
    return result


def _packed(x: Array) -> Array:
    return x if x.is_contiguous else x.copy()


def _complex(x: Array, y: Array, start: int, count: int) -> Array:
    import kernwright as kw

    a, b = (kw.real(x), kw.imag(x)), (kw.real(y), kw.imag(y))
    products = [[_convolved(p, q, start, count) for q in b] for p in a]
    real = products[0][0] - products[1][1]
    imaginary = products[0][1] + products[1][0]
    return kw.stack([real, imaginary], axis=-1).view(x.dtype).reshape(count)


def _by_transforms(x: Array, y: Array, start: int, count: int) -> Array:
    import kernwright as kw

    # A power of two, so that each factor of the transform is a small matrix.
    size = 1 << (x.size + y.size - 2).bit_length()
    if x.dtype.kind == "c":
        whole = kw.fft.ifft(kw.fft.fft(x, n=size) * kw.fft.fft(y, n=size))
    else:
        wide = x.astype(np.float64 if x.itemsize == 8 else np.float32, copy=False)
        other = y.astype(wide.dtype, copy=False)
        product = kw.fft.rfft(wide, n=size) * kw.fft.rfft(other, n=size)
        whole = kw.fft.irfft(product, n=size)
    return whole[start : start + count].astype(x.dtype)
