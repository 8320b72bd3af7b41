"""Convolutions and transposed convolutions."""

from __future__ import annotations

from typing import Any, Literal

from kernwright import _core
from kernwright._core import Array
from kernwright.nn._conv import _geometry as geometry

__all__ = ["conv1d", "conv2d", "conv_transpose1d"]

Precision = Literal["float32", "tf32"]


def conv1d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1, *, precision: Precision | None = None,
) -> Array:  # fmt: skip
    """The convolution of sequences (N, C, L) or (C, L) with weights (outputs, C / groups, k).

    The result is (N, outputs, M) or (outputs, M). The arguments are those of conv2d(), for length;
    `padding` may be a pair (before, after).

    >>> x = kw.asarray([[[1.0, 2.0, 3.0, 4.0]]])
    >>> kw.nn.conv1d(x, kw.asarray([[[1.0, 0.0, -1.0]]]), padding=1).numpy().tolist()
    [[[-2.0, -2.0, -2.0, 3.0]]]
    """
    return _convolved(x, weight, bias, stride, padding, dilation, groups, precision, 1)


def conv2d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1, *, precision: Precision | None = None,
) -> Array:  # fmt: skip
    """The convolution of images (N, C, H, W) or (C, H, W) with weights (outputs, C / groups, k, k).

    y[n, o, i, j] = bias[o] + sum of x[n, c, i stride + a dilation - padding, j ...] * weight[o, c,
    a, b]: with `groups`, the outputs of a group take its channels alone. An axis of n elements
    gives (n + 2 padding - dilation (k - 1) - 1) // stride + 1. Stride, padding and dilation are
    ints, or one for each axis of space; `padding` is also a pair (before, after) for each axis,
    "valid" (0) or "same" (as many results as elements, of stride 1; the odd zero is behind).

    x is float16, bfloat16, float32 or float64, of any strides; weight, bias (outputs,) and the
    result have its dtype. Sums are float32, float64 for float64, in a fixed order: the same bits in
    each run. Many channels are products of matrices on tensor cores for 16-bit floats, whose
    operand takes as much memory as x, times k / stride along H; precision="tf32" allows products of
    float32 to round x and the weights to 11 bits. Raises InvalidArgument with the shapes or dtypes.

    >>> x = kw.ones((1, 2, 4, 4))
    >>> kw.nn.conv2d(x, kw.ones((3, 2, 3, 3)), kw.ones(3)).numpy()[0, 0].tolist()
    [[19.0, 19.0], [19.0, 19.0]]
    """
    return _convolved(x, weight, bias, stride, padding, dilation, groups, precision, 2)


def conv_transpose1d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1, *,
    precision: Precision | None = None,
) -> Array:  # fmt: skip
    """The transposed convolution of sequences (N, C, L) with weights (C, outputs / groups, k): what
    conv1d() is to its result, this is to x, as an upsampling by `stride`.

    Element i of x is added, times weight[c, o, a], to y[o, i stride - padding + a dilation]. L
    elements give (L - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1, where
    output_padding is below stride or dilation. Types, errors and the rest are those of conv2d().

    >>> x = kw.asarray([[[1.0, 2.0]]])
    >>> kw.nn.conv_transpose1d(x, kw.asarray([[[1.0, 10.0]]]), stride=2).numpy().tolist()
    [[[1.0, 10.0, 2.0, 20.0]]]
    """
    array, matrix, added, alone = geometry.operands(x, weight, bias, 1)
    made = geometry.of_transposed(array, matrix, stride, padding, output_padding, dilation, groups)
    return _run(array, matrix, added, made, True, precision, alone)


def _convolved(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: Any,
    precision: Precision | None, axes: int,
) -> Array:  # fmt: skip
    array, matrix, added, alone = geometry.operands(x, weight, bias, axes)
    made = geometry.of_convolution(array, matrix, stride, padding, dilation, groups)
    return _run(array, matrix, added, made, False, precision, alone)


def _run(
    x: Array, weight: Array, bias: Array | None, made: geometry.Geometry, transposed: bool,
    precision: str | None, alone: bool,
) -> Array:  # fmt: skip
    axes = made.axes
    y = _core._convolve(
        geometry.plane(x, axes), geometry.plane(weight, axes), bias, made.given, transposed,
        precision,
    )  # fmt: skip
    return geometry.lines(y, axes, alone)
