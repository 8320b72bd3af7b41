"""Gradients of poolings: each input gathers from the windows that hold it, in a fixed order."""

from __future__ import annotations

import operator
from typing import Any

from kernwright import _core
from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.nn._spatial._windows import (
    Windows,
    adaptive_windows,
    fold,
    planes,
    unfold,
    windows,
)

__all__ = [
    "adaptive_avg_pool1d_backward",
    "adaptive_avg_pool2d_backward",
    "adaptive_avg_pool3d_backward",
    "adaptive_max_pool1d_backward",
    "adaptive_max_pool2d_backward",
    "adaptive_max_pool3d_backward",
    "avg_pool1d_backward",
    "avg_pool2d_backward",
    "avg_pool3d_backward",
    "max_pool1d_backward",
    "max_pool2d_backward",
    "max_pool3d_backward",
]


def max_pool1d_backward(
    dy: Any, indices: Any, shape: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
    dilation: Any = 1, *, ceil_mode: bool = False,
) -> Array:  # fmt: skip
    """dx of `shape` for the gradient `dy` of max_pool1d(x, ...), whose indices these are.

    >>> x = kw.asarray([[1.0, 5.0, 2.0, 3.0]])
    >>> y, indices = kw.nn.max_pool1d(x, 2, return_indices=True)
    >>> kw.nn.max_pool1d_backward(kw.ones((1, 2)), indices, x.shape, 2).numpy().tolist()
    [[0.0, 1.0, 0.0, 1.0]]
    """
    extents = _shape_of(shape, 1)
    made = windows(extents[-1:], kernel_size, stride, padding, dilation, ceil_mode)
    return _gathered(dy, indices, extents, made)


def avg_pool1d_backward(
    dy: Any, shape: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, *,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Array:  # fmt: skip
    """dx of `shape` for the gradient `dy` of avg_pool1d(x, ...).

    >>> kw.nn.avg_pool1d_backward(kw.ones((1, 2)), (1, 4), 2).numpy().tolist()
    [[0.5, 0.5, 0.5, 0.5]]
    """
    extents = _shape_of(shape, 1)
    made = windows(
        extents[-1:], kernel_size, stride, padding, 1, ceil_mode, count_include_pad,
        divisor_override,
    )  # fmt: skip
    return _gathered(dy, None, extents, made)


def adaptive_max_pool1d_backward(dy: Any, indices: Any, shape: Any) -> Array:
    """dx of `shape` for the gradient `dy` of adaptive_max_pool1d(), whose indices these are.

    >>> x = kw.asarray([[1.0, 5.0, 2.0, 3.0]])
    >>> y, indices = kw.nn.adaptive_max_pool1d(x, 1, return_indices=True)
    >>> kw.nn.adaptive_max_pool1d_backward(kw.ones((1, 1)), indices, x.shape).numpy().tolist()
    [[0.0, 1.0, 0.0, 0.0]]
    """
    return _adaptive(dy, indices, shape, 1)


def adaptive_avg_pool1d_backward(dy: Any, shape: Any) -> Array:
    """dx of `shape` for the gradient `dy` of adaptive_avg_pool1d().

    >>> kw.nn.adaptive_avg_pool1d_backward(kw.ones((1, 1)), (1, 4)).numpy().tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    return _adaptive(dy, None, shape, 1)


def max_pool2d_backward(
    dy: Any, indices: Any, shape: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
    dilation: Any = 1, *, ceil_mode: bool = False,
) -> Array:  # fmt: skip
    """dx of `shape` for the gradient `dy` of max_pool2d(x, ...), whose indices these are.

    >>> x = kw.asarray([[[1.0, 5.0], [2.0, 3.0]]])
    >>> y, indices = kw.nn.max_pool2d(x, 2, return_indices=True)
    >>> kw.nn.max_pool2d_backward(kw.ones((1, 1, 1)), indices, x.shape, 2).numpy().tolist()
    [[[0.0, 1.0], [0.0, 0.0]]]
    """
    extents = _shape_of(shape, 2)
    made = windows(extents[-2:], kernel_size, stride, padding, dilation, ceil_mode)
    return _gathered(dy, indices, extents, made)


def avg_pool2d_backward(
    dy: Any, shape: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, *,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Array:  # fmt: skip
    """dx of `shape` for the gradient `dy` of avg_pool2d(x, ...).

    >>> kw.nn.avg_pool2d_backward(kw.ones((1, 1, 1)), (1, 2, 2), 2).numpy().tolist()
    [[[0.25, 0.25], [0.25, 0.25]]]
    """
    extents = _shape_of(shape, 2)
    made = windows(
        extents[-2:], kernel_size, stride, padding, 1, ceil_mode, count_include_pad,
        divisor_override,
    )  # fmt: skip
    return _gathered(dy, None, extents, made)


def adaptive_max_pool2d_backward(dy: Any, indices: Any, shape: Any) -> Array:
    """dx of `shape` for the gradient `dy` of adaptive_max_pool2d(), whose indices these are.

    >>> x = kw.asarray([[[1.0, 5.0], [2.0, 3.0]]])
    >>> y, indices = kw.nn.adaptive_max_pool2d(x, 1, return_indices=True)
    >>> kw.nn.adaptive_max_pool2d_backward(kw.ones((1, 1, 1)), indices, x.shape).numpy().tolist()
    [[[0.0, 1.0], [0.0, 0.0]]]
    """
    return _adaptive(dy, indices, shape, 2)


def adaptive_avg_pool2d_backward(dy: Any, shape: Any) -> Array:
    """dx of `shape` for the gradient `dy` of adaptive_avg_pool2d().

    >>> kw.nn.adaptive_avg_pool2d_backward(kw.ones((1, 1, 1)), (1, 2, 2)).numpy().tolist()
    [[[0.25, 0.25], [0.25, 0.25]]]
    """
    return _adaptive(dy, None, shape, 2)


def max_pool3d_backward(
    dy: Any, indices: Any, shape: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
    dilation: Any = 1, *, ceil_mode: bool = False,
) -> Array:  # fmt: skip
    """dx of `shape` for the gradient `dy` of max_pool3d(x, ...), whose indices these are.

    >>> x = kw.asarray([[[[1.0, 5.0], [2.0, 3.0]]]])
    >>> y, indices = kw.nn.max_pool3d(x, (1, 2, 2), return_indices=True)
    >>> dy = kw.ones((1, 1, 1, 1))
    >>> kw.nn.max_pool3d_backward(dy, indices, x.shape, (1, 2, 2)).numpy().tolist()
    [[[[0.0, 1.0], [0.0, 0.0]]]]
    """
    extents = _shape_of(shape, 3)
    made = windows(extents[-3:], kernel_size, stride, padding, dilation, ceil_mode)
    return _gathered(dy, indices, extents, made)


def avg_pool3d_backward(
    dy: Any, shape: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, *,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Array:  # fmt: skip
    """dx of `shape` for the gradient `dy` of avg_pool3d(x, ...).

    >>> dy = kw.ones((1, 1, 1, 1))
    >>> kw.nn.avg_pool3d_backward(dy, (1, 1, 2, 2), (1, 2, 2)).numpy().tolist()
    [[[[0.25, 0.25], [0.25, 0.25]]]]
    """
    extents = _shape_of(shape, 3)
    made = windows(
        extents[-3:], kernel_size, stride, padding, 1, ceil_mode, count_include_pad,
        divisor_override,
    )  # fmt: skip
    return _gathered(dy, None, extents, made)


def adaptive_max_pool3d_backward(dy: Any, indices: Any, shape: Any) -> Array:
    """dx of `shape` for the gradient `dy` of adaptive_max_pool3d(), whose indices these are.

    >>> x = kw.asarray([[[[1.0, 5.0], [2.0, 3.0]]]])
    >>> y, indices = kw.nn.adaptive_max_pool3d(x, 1, return_indices=True)
    >>> dy = kw.ones((1, 1, 1, 1))
    >>> kw.nn.adaptive_max_pool3d_backward(dy, indices, x.shape).numpy().tolist()
    [[[[0.0, 1.0], [0.0, 0.0]]]]
    """
    return _adaptive(dy, indices, shape, 3)


def adaptive_avg_pool3d_backward(dy: Any, shape: Any) -> Array:
    """dx of `shape` for the gradient `dy` of adaptive_avg_pool3d().

    >>> kw.nn.adaptive_avg_pool3d_backward(kw.ones((1, 1, 1, 1)), (1, 1, 2, 2)).numpy().tolist()
    [[[[0.25, 0.25], [0.25, 0.25]]]]
    """
    return _adaptive(dy, None, shape, 3)


def _shape_of(shape: Any, axes: int) -> tuple[int, ...]:
    try:
        extents = tuple(operator.index(extent) for extent in shape)
    except TypeError:
        raise ArgumentError(f"shape is that of the input, ints, got {shape!r:.60}") from None
    if len(extents) < axes + 1:
        raise InvalidArgument(f"shape is that of an input with {axes} axes of space, got {shape}")
    return extents


def _adaptive(dy: Any, indices: Any, shape: Any, axes: int) -> Array:
    extents = _shape_of(shape, axes)
    gradient = planes(dy, axes, "dy")
    made = adaptive_windows(extents[-axes:], list(gradient.shape[-axes:]))
    return _gathered(gradient, indices, extents, made)


def _gathered(dy: Any, indices: Any, extents: tuple[int, ...], made: Windows) -> Array:
    gradient = planes(dy, made.axes, "dy")
    expected = (*extents[: -made.axes], *made.out)
    if gradient.shape != expected:
        raise InvalidArgument(
            f"the gradient of an input {extents} has shape {expected}, got {gradient.shape}"
        )
    places = None
    if indices is not None:
        places = device_array(indices, "indices")
        if places.shape != expected:
            raise InvalidArgument(f"indices have shape {expected}, got {places.shape}")
        places = fold(places, made.axes)
    made_gradient = _core._pool_backward(fold(gradient, made.axes), places, made.given)
    return unfold(made_gradient, extents[: -made.axes], extents[-made.axes :])
