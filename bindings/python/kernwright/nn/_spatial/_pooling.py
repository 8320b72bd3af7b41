"""Largest values and averages of windows."""

from __future__ import annotations

from typing import Any

from kernwright import _core
from kernwright._core import Array
from kernwright.nn._spatial._windows import (
    Windows,
    adaptive_windows,
    fold,
    planes,
    unfold,
    windows,
)

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
]


def max_pool1d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, *,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """The largest value of each window of an array (..., C, L), or a NaN where one lies in it.

    The arguments are those of max_pool2d(), for length.

    >>> kw.nn.max_pool1d(kw.asarray([[1.0, 5.0, 2.0, 3.0]]), 2).numpy().tolist()
    [[5.0, 3.0]]
    """
    return _largest(x, 1, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool1d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, *, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Array:  # fmt: skip
    """The average of each window of an array (..., C, L).

    The arguments are those of avg_pool2d(), for length.

    >>> kw.nn.avg_pool1d(kw.asarray([[1.0, 5.0, 2.0, 3.0]]), 2).numpy().tolist()
    [[3.0, 2.5]]
    """
    array = planes(x, 1)
    made = windows(
        array.shape[-1:], kernel_size, stride, padding, 1, ceil_mode, count_include_pad,
        divisor_override,
    )  # fmt: skip
    return _averages(array, made)


def adaptive_max_pool1d(x: Any, output_size: Any, *, return_indices: bool = False) -> Any:
    """The largest values of an array (..., C, L) in `output_size` windows along each axis.

    The arguments are those of adaptive_max_pool2d(), for length.

    >>> kw.nn.adaptive_max_pool1d(kw.asarray([[1.0, 5.0, 2.0, 3.0]]), 1).numpy().tolist()
    [[5.0]]
    """
    array = planes(x, 1)
    return _places(array, adaptive_windows(array.shape[-1:], output_size), return_indices)


def adaptive_avg_pool1d(x: Any, output_size: Any) -> Array:
    """The averages of an array (..., C, L) in `output_size` windows along each axis of space:
    those of adaptive_max_pool2d().

    >>> kw.nn.adaptive_avg_pool1d(kw.asarray([[1.0, 5.0, 2.0, 3.0]]), 1).numpy().tolist()
    [[2.75]]
    """
    array = planes(x, 1)
    return _averages(array, adaptive_windows(array.shape[-1:], output_size))


def max_pool2d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, *,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """The largest value of each window of an array (..., C, H, W), or a NaN where one lies in it.

    Window sizes, strides (`kernel_size` by default), paddings (at most half of the size; their
    values never count) and dilations are ints, or one for each axis of space. With `ceil_mode` a
    window at the end may reach beyond it. `x` is float16, bfloat16, float32 or float64, of any
    strides; the result has its dtype. `return_indices` gives (values, indices): the places of the
    first largest values in their planes, counted row by row, as int64. Raises InvalidArgument.

    >>> kw.nn.max_pool2d(kw.asarray([[[1.0, 5.0], [2.0, 3.0]]]), 2).numpy().tolist()
    [[[5.0]]]
    """
    return _largest(x, 2, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool2d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, *, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Array:  # fmt: skip
    """The average of each window of an array (..., C, H, W).

    Zeros stand for the padding; without `count_include_pad` they do not count. `divisor_override`
    divides every sum instead of the number of elements. Sums are made in float32, of float64 in
    float64. The other arguments are those of max_pool2d().

    >>> kw.nn.avg_pool2d(kw.asarray([[[1.0, 5.0], [2.0, 3.0]]]), 2).numpy().tolist()
    [[[2.75]]]
    """
    array = planes(x, 2)
    made = windows(
        array.shape[-2:], kernel_size, stride, padding, 1, ceil_mode, count_include_pad,
        divisor_override,
    )  # fmt: skip
    return _averages(array, made)


def adaptive_max_pool2d(x: Any, output_size: Any, *, return_indices: bool = False) -> Any:
    """The largest values of an array (..., C, H, W) in `output_size` windows along each axis.

    Output o of an axis of n elements takes those from floor(o n / m) up to ceil((o + 1) n / m) of
    m = output_size, an int or one for each axis (None keeps an axis as it is).

    >>> kw.nn.adaptive_max_pool2d(kw.asarray([[[1.0, 5.0], [2.0, 3.0]]]), 1).numpy().tolist()
    [[[5.0]]]
    """
    array = planes(x, 2)
    return _places(array, adaptive_windows(array.shape[-2:], output_size), return_indices)


def adaptive_avg_pool2d(x: Any, output_size: Any) -> Array:
    """The averages of an array (..., C, H, W) in `output_size` windows along each axis of space:
    those of adaptive_max_pool2d().

    >>> kw.nn.adaptive_avg_pool2d(kw.asarray([[[1.0, 5.0], [2.0, 3.0]]]), 1).numpy().tolist()
    [[[2.75]]]
    """
    array = planes(x, 2)
    return _averages(array, adaptive_windows(array.shape[-2:], output_size))


def max_pool3d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, *,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    """The largest value of each window of an array (..., C, D, H, W), or a NaN that lies in it.

    The arguments are those of max_pool2d(), for depth, height and width.

    >>> kw.nn.max_pool3d(kw.asarray([[[[1.0, 5.0], [2.0, 3.0]]]]), (1, 2, 2)).numpy().tolist()
    [[[[5.0]]]]
    """
    return _largest(x, 3, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool3d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, *, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Array:  # fmt: skip
    """The average of each window of an array (..., C, D, H, W).

    The arguments are those of avg_pool2d(), for depth, height and width.

    >>> kw.nn.avg_pool3d(kw.asarray([[[[1.0, 5.0], [2.0, 3.0]]]]), (1, 2, 2)).numpy().tolist()
    [[[[2.75]]]]
    """
    array = planes(x, 3)
    made = windows(
        array.shape[-3:], kernel_size, stride, padding, 1, ceil_mode, count_include_pad,
        divisor_override,
    )  # fmt: skip
    return _averages(array, made)


def adaptive_max_pool3d(x: Any, output_size: Any, *, return_indices: bool = False) -> Any:
    """The largest values of an array (..., C, D, H, W) in `output_size` windows along each axis.

    The arguments are those of adaptive_max_pool2d(), for depth, height and width.

    >>> kw.nn.adaptive_max_pool3d(kw.asarray([[[[1.0, 5.0], [2.0, 3.0]]]]), 1).numpy().tolist()
    [[[[5.0]]]]
    """
    array = planes(x, 3)
    return _places(array, adaptive_windows(array.shape[-3:], output_size), return_indices)


def adaptive_avg_pool3d(x: Any, output_size: Any) -> Array:
    """The averages of an array (..., C, D, H, W) in `output_size` windows along each axis of space:
    those of adaptive_max_pool2d().

    >>> kw.nn.adaptive_avg_pool3d(kw.asarray([[[[1.0, 5.0], [2.0, 3.0]]]]), 1).numpy().tolist()
    [[[[2.75]]]]
    """
    array = planes(x, 3)
    return _averages(array, adaptive_windows(array.shape[-3:], output_size))


def _largest(
    x: Any, axes: int, size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
    return_indices: bool,
) -> Any:  # fmt: skip
    array = planes(x, axes)
    made = windows(array.shape[array.ndim - axes :], size, stride, padding, dilation, ceil_mode)
    return _places(array, made, return_indices)


def _places(array: Array, made: Windows, return_indices: bool) -> Any:
    before = array.shape[: array.ndim - made.axes]
    values, places = _core._pool_largest(fold(array, made.axes), made.given, bool(return_indices))
    if places is None:
        return unfold(values, before, made.out)
    return unfold(values, before, made.out), unfold(places, before, made.out)


def _averages(array: Array, made: Windows) -> Array:
    before = array.shape[: array.ndim - made.axes]
    return unfold(_core._pool_average(fold(array, made.axes), made.given), before, made.out)
