"""Frequencies of a transform, and the exchange of its halves."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernwright._array.creation import asarray
from kernwright._array.operands import axis_of, device_array
from kernwright._core import Array, _result_type
from kernwright.errors import ArgumentError, InvalidArgument

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def _checked_count(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise ArgumentError(f"the length of a transform is an int, not {type(n).__name__}")
    if not 1 <= n < 1 << 48:
        raise InvalidArgument(f"a transform has at least one element and fits in memory: {n}")
    return int(n)


def fftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of fft() over `n` samples `d` apart: 0, 1, ..., -2, -1 over n * d.

    >>> kw.fft.fftfreq(4).numpy()
    array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    values = np.fft.fftfreq(_checked_count(n), d)
    return asarray(values, dtype=_result_type(0.0) if dtype is None else dtype, device=device)


def rfftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of rfft(): 0, 1, ..., n // 2 over n * d.

    >>> kw.fft.rfftfreq(4).numpy()
    array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    values = np.fft.rfftfreq(_checked_count(n), d)
    return asarray(values, dtype=_result_type(0.0) if dtype is None else dtype, device=device)


def _axes(x: Array, axes: Any) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(x.ndim))
    given = axes if isinstance(axes, (tuple, list)) else (axes,)
    return tuple(axis_of(axis, x.ndim) for axis in given)


def fftshift(x: Array, /, axes: Any = None) -> Array:
    """The frequency 0 in the middle of each axis (None: all).

    >>> kw.fft.fftshift(kw.asarray([0, 1, -2, -1])).numpy()
    array([-2, -1,  0,  1])
    """
    import kernwright as kw

    x = device_array(x)
    chosen = _axes(x, axes)
    return kw.roll(x, tuple(x.shape[a] // 2 for a in chosen), axis=chosen)


def ifftshift(x: Array, /, axes: Any = None) -> Array:
    """What fftshift() did, undone.

    >>> kw.fft.ifftshift(kw.asarray([-2, -1, 0, 1])).numpy()
    array([ 0,  1, -2, -1])
    """
    import kernwright as kw

    x = device_array(x)
    chosen = _axes(x, axes)
    return kw.roll(x, tuple(-(x.shape[a] // 2) for a in chosen), axis=chosen)
