"""Transforms by Cooley and Tukey's factors, each a product with a small matrix of roots of unity.

n = n1 * n2 elements are n1 rows: a transform of the columns, a multiplication by roots, and
transforms of the rows (J. Cooley, J. Tukey, 1965). Large prime factors go through a convolution
with a chirp (L. Bluestein, 1970). Roots are computed in float64.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from kernwright import _core
from kernwright._array.creation import asarray
from kernwright._array.operands import axis_of, device_array, stored
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.fft._helpers import _checked_count

__all__ = [
    "fft",
    "fft2",
    "fftn",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftn",
]

_WHOLE = 64  # such transforms are one product
_LARGEST_FACTOR = 512


@functools.lru_cache(maxsize=256)
def _roots(kind: str, n: int, m: int, sign: int, dtype: str, device: Any) -> Array:
    """Constants of a transform on a device."""
    if kind == "matrix":
        cycles = (np.arange(n)[:, None] * np.arange(n)[None, :] % n) / n
    elif kind == "twist":  # of rows of m, n elements in all
        cycles = (np.arange(n // m)[:, None] * np.arange(m)[None, :] % n) / n
    else:  # the chirp
        cycles = (np.arange(n, dtype=np.int64) ** 2 % (2 * n)) / (2 * n)
    return asarray(np.exp(sign * 2j * np.pi * cycles).astype(dtype), device=device)


def _constant(kind: str, n: int, m: int, sign: int, like: Array) -> Array:
    return _roots(kind, n, m, sign, like.dtype.name, like.device)


def _factor(n: int) -> int:
    """The largest divisor up to _WHOLE, else the smallest one other than 1."""
    for candidate in range(min(_WHOLE, n), 1, -1):
        if n % candidate == 0:
            return candidate
    return next((f for f in range(_WHOLE + 1, math.isqrt(n) + 1) if n % f == 0), n)


def _along_last(x: Array, sign: int) -> Array:
    """The transform of the last axis, without a factor."""
    n = x.shape[-1]
    if n <= _WHOLE:
        return _core._matmul(_as_matrix(x), _constant("matrix", n, 0, sign, x)).reshape(x.shape)
    first = _factor(n)
    if first == n:
        if n <= _LARGEST_FACTOR:
            matrix = _constant("matrix", n, 0, sign, x)
            return _core._matmul(_as_matrix(x), matrix).reshape(x.shape)
        return _by_chirp(x, sign)
    rows = x.reshape(*x.shape[:-1], first, n // first)
    if first <= _LARGEST_FACTOR:
        columns = _core._matmul(_constant("matrix", first, 0, sign, x), rows)
    else:
        columns = _swapped(_along_last(_swapped(rows), sign))
    columns = columns * _constant("twist", n, n // first, sign, x)
    return _swapped(_along_last(columns, sign)).reshape(x.shape)


def _as_matrix(x: Array) -> Array:
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _swapped(x: Array) -> Array:
    return x.transpose(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)


def _by_chirp(x: Array, sign: int) -> Array:
    """A convolution of a power of two elements."""
    import kernwright as kw

    n = x.shape[-1]
    length = 1 << (2 * n - 2).bit_length()
    chirp = _constant("chirp", n, 0, sign, x)
    back = kw.conj(chirp)
    padded = _resized(x * chirp, length)
    filter = kw.concat([_resized(back, length - n + 1), kw.flip(back[1:])])
    product = _along_last(padded, -1) * _along_last(filter, -1)
    convolved = _along_last(product, 1)[..., :n] * (1.0 / length)
    return convolved * chirp


def _resized(x: Array, n: int) -> Array:
    """Cut, or with zeros at the end."""
    import kernwright as kw

    have = x.shape[-1]
    if n <= have:
        return x[..., :n] if n < have else x
    zeros = kw.zeros((*x.shape[:-1], n - have), dtype=x.dtype, device=x.device)
    return kw.concat([x, zeros], axis=-1)


def _scale(n: int, norm: str | None, forward: bool) -> float:
    norm = "backward" if norm is None else norm
    if norm not in ("backward", "ortho", "forward"):
        raise InvalidArgument(f"norm={norm!r}: 'backward', 'ortho' or 'forward'")
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if (norm == "forward") == forward else 1.0


def _complex(x: Array) -> Array:
    if x.dtype.kind == "c":
        return x
    wide = x.dtype.kind in "iub" or x.dtype == np.float64
    return x.astype(np.complex128 if wide else np.complex64)


def _axis(x: Array, axis: int) -> int:
    return int(axis_of(axis, x.ndim))


def _count(n: int | None, x: Array, axis: int) -> int:
    return _checked_count(x.shape[axis] if n is None else n)


def _transformed(x: Array, n: int | None, axis: int, norm: str | None, forward: bool) -> Array:
    x = device_array(x)
    axis = _axis(x, axis)
    n = _count(n, x, axis)
    scale = _scale(n, norm, forward)
    order = [a for a in range(x.ndim) if a != axis] + [axis]
    moved = _resized(_complex(x.transpose(*order)), n)
    result = _along_last(moved, -1 if forward else 1)
    if scale != 1:
        result = result * scale
    return result.transpose(*(order.index(a) for a in range(x.ndim)))


def _stored(result: Array, out: Array | None) -> Array:
    return result if out is None else stored(result, out)


def fft(
    x: Array,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """sum over j of x[j] * exp(-2 pi i j k / n) along `axis`, cut or filled with zeros to `n`.

    norm: where the factor 1/n goes: "backward" (the inverse), "forward", or "ortho" (1/sqrt(n) in
    both). float32 and narrower floats give complex64, float64, integers and bool complex128. `out`
    takes the result, by a copy, in all functions of this module.

    >>> kw.fft.fft(kw.asarray([1 + 0j, 0, 0, 0])).numpy()
    array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _stored(_transformed(x, n, axis, norm, True), out)


def ifft(
    x: Array,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """The inverse of fft().

    >>> kw.fft.ifft(kw.asarray([4 + 0j, 0, 0, 0])).numpy()
    array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _stored(_transformed(x, n, axis, norm, False), out)


def _axes_and_sizes(x: Array, s: Any, axes: Any) -> list[tuple[int, int]]:
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    axes = [_axis(x, a) for a in axes]
    sizes = [x.shape[a] for a in axes] if s is None else [_checked_count(n) for n in s]
    if len(sizes) != len(axes):
        raise InvalidArgument(f"{len(sizes)} sizes are given for {len(axes)} axes")
    return list(zip(axes, sizes, strict=True))


def fftn(
    x: Array, /, s: Any = None, axes: Any = None, norm: str | None = None, out: Array | None = None
) -> Array:
    """fft() over several axes (None: all), each cut or filled to its size in `s`.

    >>> kw.fft.fftn(kw.asarray([[1 + 0j, 0], [0, 0]])).numpy()
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]], dtype=complex64)
    """
    x = device_array(x)
    for axis, n in _axes_and_sizes(x, s, axes):
        x = fft(x, n=n, axis=axis, norm=norm)
    return _stored(x, out)


def ifftn(
    x: Array, /, s: Any = None, axes: Any = None, norm: str | None = None, out: Array | None = None
) -> Array:
    """The inverse of fftn().

    >>> kw.fft.ifftn(kw.asarray([[4 + 0j, 0], [0, 0]])).numpy()
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]], dtype=complex64)
    """
    x = device_array(x)
    for axis, n in _axes_and_sizes(x, s, axes):
        x = ifft(x, n=n, axis=axis, norm=norm)
    return _stored(x, out)


def _real(value: Any, name: str) -> Array:
    x: Array = device_array(value)
    if x.dtype.kind == "c":
        raise ArgumentError(f"{name}() transforms real numbers, not {x.dtype}: kw.fft.fft()")
    return x


def _head(x: Array, axis: int, count: int) -> Array:
    return x[(slice(None),) * (axis % x.ndim) + (slice(count),)]


def rfft(
    x: Array,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """The first n // 2 + 1 elements of fft() of real numbers: the others are their conjugates.

    >>> kw.fft.rfft(kw.asarray([1.0, 0, 0, 0])).numpy()
    array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    x = _real(x, "rfft")
    count = _count(n, x, _axis(x, axis))
    return _stored(_head(fft(x, n=count, axis=axis, norm=norm), axis, count // 2 + 1), out)


def irfft(
    x: Array,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """The inverse of rfft(): `n` real numbers (2 * (m - 1) of m, unless told otherwise).

    >>> kw.fft.irfft(kw.asarray([4 + 0j, 0, 0])).numpy()
    array([1., 1., 1., 1.], dtype=float32)
    """
    import kernwright as kw

    x = device_array(x)
    axis = _axis(x, axis)
    n = _count(2 * (x.shape[axis] - 1) if n is None else n, x, axis)
    half = _complex(kw.moveaxis(x, axis, -1))
    half = _resized(half, n // 2 + 1)
    # What has no counterpart counts by its real part alone.
    mirrored = kw.conj(kw.flip(half[..., 1 : (n + 1) // 2], axis=-1))
    first = kw.real(half[..., :1]).astype(half.dtype)
    middle = half[..., 1:]
    if n % 2 == 0:
        nyquist = kw.real(half[..., n // 2 :]).astype(half.dtype)
        middle = kw.concat([half[..., 1 : n // 2], nyquist], axis=-1)
    whole = kw.concat([first, middle, mirrored], axis=-1)[..., :n]
    return _stored(kw.moveaxis(kw.real(ifft(whole, norm=norm)), -1, axis), out)


def rfftn(
    x: Array, /, s: Any = None, axes: Any = None, norm: str | None = None, out: Array | None = None
) -> Array:
    """rfft() over the last of several axes, then fft() over the others.

    >>> kw.fft.rfftn(kw.asarray([[1.0, 0], [0, 0]])).numpy()
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]], dtype=complex64)
    """
    x = _real(x, "rfftn")
    pairs = _axes_and_sizes(x, s, axes)
    x = rfft(x, n=pairs[-1][1], axis=pairs[-1][0], norm=norm)
    for axis, n in pairs[:-1]:
        x = fft(x, n=n, axis=axis, norm=norm)
    return _stored(x, out)


def irfftn(
    x: Array, /, s: Any = None, axes: Any = None, norm: str | None = None, out: Array | None = None
) -> Array:
    """The inverse of rfftn().

    >>> kw.fft.irfftn(kw.asarray([[4 + 0j, 0], [0, 0]])).numpy()
    array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    x = device_array(x)
    pairs = _axes_and_sizes(x, s, axes)
    last, count = pairs[-1]
    if s is None:
        count = 2 * (x.shape[last] - 1)
    for axis, n in pairs[:-1]:
        x = ifft(x, n=n, axis=axis, norm=norm)
    return _stored(irfft(x, n=count, axis=last, norm=norm), out)


_LAST_TWO = (-2, -1)


def fft2(
    x: Array,
    /,
    s: Any = None,
    axes: Any = _LAST_TWO,
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """fftn() over two axes, the last ones unless told otherwise.

    >>> kw.fft.fft2(kw.asarray([[1 + 0j, 0], [0, 0]])).numpy()
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]], dtype=complex64)
    """
    return fftn(x, s, axes, norm, out)


def ifft2(
    x: Array,
    /,
    s: Any = None,
    axes: Any = _LAST_TWO,
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """The inverse of fft2().

    >>> kw.fft.ifft2(kw.asarray([[4 + 0j, 0], [0, 0]])).numpy()
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]], dtype=complex64)
    """
    return ifftn(x, s, axes, norm, out)


def rfft2(
    x: Array,
    /,
    s: Any = None,
    axes: Any = _LAST_TWO,
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """rfftn() over two axes, the last ones unless told otherwise.

    >>> kw.fft.rfft2(kw.asarray([[1.0, 0], [0, 0]])).numpy()
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]], dtype=complex64)
    """
    return rfftn(x, s, axes, norm, out)


def irfft2(
    x: Array,
    /,
    s: Any = None,
    axes: Any = _LAST_TWO,
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """The inverse of rfft2().

    >>> kw.fft.irfft2(kw.asarray([[4 + 0j, 0], [0, 0]])).numpy()
    array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return irfftn(x, s, axes, norm, out)


_OTHER = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def _other(norm: str | None) -> str:
    """The norm of the inverse transform."""
    if norm not in _OTHER:
        raise InvalidArgument(f"norm={norm!r}: 'backward', 'ortho' or 'forward'")
    return _OTHER[norm]


def hfft(
    x: Array,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """The real transform of numbers whose second half would be conjugates of the first.

    >>> kw.fft.hfft(kw.asarray([1 + 0j, 0, 0])).numpy()
    array([1., 1., 1., 1.], dtype=float32)
    """
    import kernwright as kw

    return _stored(
        irfft(kw.conj(_complex(device_array(x))), n=n, axis=axis, norm=_other(norm)), out
    )


def ihfft(
    x: Array,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    out: Array | None = None,
) -> Array:
    """The inverse of hfft().

    >>> kw.fft.ihfft(kw.asarray([4.0, 0, 0, 0])).numpy()
    array([1.-0.j, 1.-0.j, 1.-0.j], dtype=complex64)
    """
    import kernwright as kw

    return _stored(kw.conj(rfft(x, n=n, axis=axis, norm=_other(norm))), out)
