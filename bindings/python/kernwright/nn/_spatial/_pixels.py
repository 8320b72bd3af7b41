"""Channels into space and back."""

from __future__ import annotations

import operator
from typing import Any

from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.nn._spatial._windows import planes

__all__ = ["pixel_shuffle", "pixel_unshuffle"]


def pixel_shuffle(x: Any, upscale_factor: int) -> Array:
    """(..., C r^2, H, W) to (..., C, H r, W r), with r = upscale_factor: element (h r + i, w r + j)
    of channel c is element (h, w) of channel c r^2 + i r + j. A copy, of any dtype.

    >>> kw.nn.pixel_shuffle(kw.arange(4).reshape(4, 1, 1), 2).numpy().tolist()
    [[[0, 1], [2, 3]]]
    """
    array, r = planes(x, 2), _factor(upscale_factor, "upscale_factor")
    *before, channels, height, width = array.shape
    if channels % (r * r):
        raise InvalidArgument(f"channels are a multiple of {r} * {r}, got shape {array.shape}")
    kept, n = channels // (r * r), len(before)
    parts = array.reshape((*before, kept, r, r, height, width))
    order = (*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return parts.transpose(order).copy().reshape((*before, kept, height * r, width * r))


def pixel_unshuffle(x: Any, downscale_factor: int) -> Array:
    """(..., C, H r, W r) to (..., C r^2, H, W), with r = downscale_factor: pixel_shuffle() undone.

    >>> kw.nn.pixel_unshuffle(kw.arange(4).reshape(1, 2, 2), 2).numpy().tolist()
    [[[0]], [[1]], [[2]], [[3]]]
    """
    array, r = planes(x, 2), _factor(downscale_factor, "downscale_factor")
    *before, channels, height, width = array.shape
    if height % r or width % r:
        raise InvalidArgument(f"height and width are multiples of {r}, got shape {array.shape}")
    n = len(before)
    parts = array.reshape((*before, channels, height // r, r, width // r, r))
    order = (*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return (
        parts.transpose(order).copy().reshape((*before, channels * r * r, height // r, width // r))
    )


def _factor(value: Any, name: str) -> int:
    try:
        factor = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} is an int, got {value!r:.60}") from None
    if factor < 1:
        raise InvalidArgument(f"{name} is above 0, got {factor}")
    return factor
