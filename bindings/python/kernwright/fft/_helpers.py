"""Frequencies of a transform, and the exchange of its halves."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernwright._array.creation import asarray
from kernwright._core import Array
from kernwright.errors import InvalidArgument

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def _checked_count(n: int) -> int:
    if n < 1:
        raise InvalidArgument(f"a transform has at least one element, not {n}")
    return int(n)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of fft() over `n` samples `d` apart: 0, 1, ..., -2, -1 over n * d."""
    values = np.fft.fftfreq(_checked_count(n), d)
    return asarray(values, dtype=np.float32 if dtype is None else dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of rfft(): 0, 1, ..., n // 2 over n * d."""
    values = np.fft.rfftfreq(_checked_count(n), d)
    return asarray(values, dtype=np.float32 if dtype is None else dtype, device=device)


def _axes(x: Array, axes: Any) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(x.ndim))
    return (axes,) if isinstance(axes, int) else tuple(axes)


def fftshift(x: Array, /, *, axes: Any = None) -> Array:
    """The frequency 0 in the middle of each axis (None: all)."""
    import kernwright as kw

    chosen = _axes(x, axes)
    return kw.roll(x, tuple(x.shape[a] // 2 for a in chosen), axis=chosen)


def ifftshift(x: Array, /, *, axes: Any = None) -> Array:
    """What fftshift() did, undone."""
    import kernwright as kw

    chosen = _axes(x, axes)
    return kw.roll(x, tuple(-(x.shape[a] // 2) for a in chosen), axis=chosen)
