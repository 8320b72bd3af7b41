"""Gradients of convolutions: the input's is a transposed convolution, and the other way round."""

from __future__ import annotations

from typing import Any

import kernwright
from kernwright import _core
from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright.errors import InvalidArgument
from kernwright.nn._conv import _geometry as geometry
from kernwright.nn._conv._forward import Precision

__all__ = ["conv1d_backward", "conv2d_backward", "conv_transpose1d_backward"]


def conv1d_backward(
    dy: Any, x: Any, weight: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1, *, bias: bool = True, precision: Precision | None = None,
) -> tuple[Array, Array, Array | None]:  # fmt: skip
    """(dx, dweight, dbias) for the gradient `dy` of y = conv1d(x, weight, bias, ...).

    The arguments are those of conv2d_backward(), for length.

    >>> x, weight = kw.asarray([[[1.0, 2.0, 3.0]]]), kw.asarray([[[1.0, 10.0]]])
    >>> dx, dweight, dbias = kw.nn.conv1d_backward(kw.ones((1, 1, 2)), x, weight)
    >>> dx.numpy().tolist(), dweight.numpy().tolist(), dbias.numpy().tolist()
    ([[[1.0, 11.0, 10.0]]], [[[3.0, 5.0]]], [2.0])
    """
    return _gradients(dy, x, weight, stride, padding, dilation, groups, bias, precision, 1)


def conv2d_backward(
    dy: Any, x: Any, weight: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1, *, bias: bool = True, precision: Precision | None = None,
) -> tuple[Array, Array, Array | None]:  # fmt: skip
    """(dx, dweight, dbias) for the gradient `dy` of y = conv2d(x, weight, bias, ...).

    `dy` has the shape of y, and the dtype of x and weight, as have the gradients; dbias is None
    where `bias` is False. The other arguments are those of conv2d(). Sums are made in float32
    (float64 for float64) in a fixed order: the same bits in each run. Raises InvalidArgument.

    >>> x, weight = kw.ones((1, 2, 3, 3)), kw.ones((4, 2, 2, 2))
    >>> dx, dweight, dbias = kw.nn.conv2d_backward(kw.ones((1, 4, 2, 2)), x, weight)
    >>> dx.numpy()[0, 0].tolist(), float(dweight[0, 0, 0, 0]), float(dbias[0])
    ([[4.0, 8.0, 4.0], [8.0, 16.0, 8.0], [4.0, 8.0, 4.0]], 4.0, 4.0)
    """
    return _gradients(dy, x, weight, stride, padding, dilation, groups, bias, precision, 2)


def conv_transpose1d_backward(
    dy: Any, x: Any, weight: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1, *, bias: bool = True, precision: Precision | None = None,
) -> tuple[Array, Array, Array | None]:  # fmt: skip
    """(dx, dweight, dbias) for the gradient `dy` of y = conv_transpose1d(x, weight, bias, ...).

    The rest is as for conv2d_backward().

    >>> x, weight = kw.asarray([[[1.0, 2.0]]]), kw.asarray([[[1.0, 10.0]]])
    >>> dy = kw.asarray([[[1.0, 2.0, 3.0, 4.0]]])
    >>> dx, dweight, _ = kw.nn.conv_transpose1d_backward(dy, x, weight, stride=2)
    >>> dx.numpy().tolist(), dweight.numpy().tolist()
    ([[[21.0, 43.0]]], [[[7.0, 10.0]]])
    """
    gradient = device_array(dy, "dy")
    array, matrix, _, alone = geometry.operands(x, weight, gradient, 1, "dy")
    made = geometry.of_transposed(array, matrix, stride, padding, output_padding, dilation, groups)
    dy_plane, x_plane = _planes(
        gradient, array, made, matrix.shape[1] * made.given["groups"], alone
    )
    back = made.turned()
    dx = _core._convolve(dy_plane, geometry.plane(matrix, 1), None, back, False, precision)
    dweight = _core._convolve_weight_gradient(dy_plane, x_plane, back, precision)
    return (geometry.lines(dx, 1, alone), geometry.lines(dweight, 1),
            _bias_gradient(dy_plane, bias))  # fmt: skip


def _gradients(
    dy: Any, x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: Any,
    bias: bool, precision: Precision | None, axes: int,
) -> tuple[Array, Array, Array | None]:  # fmt: skip
    gradient = device_array(dy, "dy")
    array, matrix, _, alone = geometry.operands(x, weight, gradient, axes, "dy")
    made = geometry.of_convolution(array, matrix, stride, padding, dilation, groups)
    dy_plane, x_plane = _planes(gradient, array, made, matrix.shape[0], alone)
    weights = geometry.plane(matrix, axes)
    dx = _core._convolve(dy_plane, weights, None, made.turned(), True, precision)
    dweight = _core._convolve_weight_gradient(x_plane, dy_plane, made.given, precision)
    return (geometry.lines(dx, axes, alone), geometry.lines(dweight, axes),
            _bias_gradient(dy_plane, bias))  # fmt: skip


def _planes(
    dy: Array, x: Array, made: geometry.Geometry, outputs: int, alone: bool
) -> tuple[Array, Array]:
    """dy, checked, and x with two axes of space; `alone`: dy has no axis of the batch."""
    expected = (outputs, *made.out) if alone else (x.shape[0], outputs, *made.out)
    if dy.shape != expected:
        raise InvalidArgument(f"dy has the shape of the result, {expected}, got {dy.shape}")
    whole = dy[None] if alone else dy
    return geometry.plane(whole, made.axes), geometry.plane(x, made.axes)


def _bias_gradient(dy: Array, bias: bool) -> Array | None:
    return kernwright.sum(dy, axis=(0, 2, 3)) if bias else None
