"""The arguments of convolutions, checked, and the extents of their results."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.nn._spatial._windows import per_axis

_MOST = 2**30


class Geometry(NamedTuple):
    """A convolution over `axes` axes of space, and its description for the extension, which has
    two: a sequence has an extent of 1 along the first."""

    axes: int
    given: dict[str, Any]

    @property
    def out(self) -> tuple[int, ...]:
        """The extents of the result along its axes of space."""
        return tuple(self.given["out"][2 - self.axes :])

    def turned(self) -> dict[str, Any]:
        """From the result to x: that of the gradient of x."""
        return {**self.given, "in": self.given["out"], "out": self.given["in"]}


def operands(
    x: Any, weight: Any, other: Any, axes: int, name_of_other: str = "bias"
) -> tuple[Array, Array, Array | None, bool]:
    """The arrays of one dtype, x with an axis of the batch, and whether it had none."""
    array, matrix = device_array(x, "x"), device_array(weight, "weight")
    added = None if other is None else device_array(other, name_of_other)
    space = "L" if axes == 1 else "H, W"
    if array.ndim not in (axes + 1, axes + 2):
        raise InvalidArgument(f"x is (N, C, {space}) or (C, {space}), got shape {array.shape}")
    if matrix.ndim != axes + 2 or 0 in matrix.shape:
        raise InvalidArgument(
            f"weight has {axes + 2} axes, none of them empty, got shape {matrix.shape}"
        )
    for name, each in (("weight", matrix), (name_of_other, added)):
        if each is not None and each.dtype != array.dtype:
            raise InvalidArgument(
                f"{name} has the dtype of x, {array.dtype}, got {each.dtype}: convert one of them "
                "with .astype()"
            )
    alone = array.ndim == axes + 1
    return array[None] if alone else array, matrix, added, alone


def plane(x: Array, axes: int) -> Array:
    """(n, channels, y, x) of an array with one or two axes of space."""
    return x if axes == 2 else x[:, :, None]


def lines(x: Array, axes: int, alone: bool = False) -> Array:
    """plane() undone; `alone`: without the axis of the batch."""
    made = x if axes == 2 else x[:, :, 0]
    return made[0] if alone else made


def of_convolution(
    x: Array, weight: Array, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Geometry:
    """The geometry of a convolution of x (N, C, ...) with weight (outputs, C / groups, ...)."""
    return _remembered(_convolution, x.shape, weight.shape, stride, padding, dilation, groups)


def _convolution(
    shape: tuple[int, ...], weight: tuple[int, ...], stride: Any, padding: Any, dilation: Any,
    groups: Any,
) -> Geometry:  # fmt: skip
    axes = len(shape) - 2
    count = number(groups, "groups")
    channels, outputs = weight[1] * count, weight[0]
    if shape[1] != channels or outputs % count != 0:
        raise InvalidArgument(
            f"Incompatible dimensions: x has shape {shape}, weight {weight}; with groups={count} "
            f"weight is (outputs, channels / {count}, ...), and {count} divides both"
        )
    sizes = list(weight[2:])
    strides = numbers(stride, axes, "stride", 1)
    dilations = numbers(dilation, axes, "dilation", 1)
    pairs = paddings(padding, axes, sizes, strides, dilations)
    out = []
    for n, k, s, (before, after), d in zip(
        shape[2:], sizes, strides, pairs, dilations, strict=True
    ):
        room = n + before + after - d * (k - 1) - 1
        if room < 0 or n + before + after > _MOST:
            raise InvalidArgument(
                f"a kernel of {k} with dilation {d} does not fit {n} elements with padding "
                f"({before}, {after}): x has shape {shape}, weight {weight}"
            )
        out.append(room // s + 1)
    return _made(axes, list(shape[2:]), out, sizes, strides,
                 [before for before, _ in pairs], dilations, count)  # fmt: skip


def of_transposed(
    x: Array, weight: Array, stride: Any, padding: Any, output_padding: Any, dilation: Any,
    groups: Any,
) -> Geometry:  # fmt: skip
    """The same for a transposed convolution, with weight (C, outputs / groups, ...)."""
    arguments = (stride, padding, output_padding, dilation, groups)
    return _remembered(_transposed, x.shape, weight.shape, *arguments)


def _transposed(
    shape: tuple[int, ...], weight: tuple[int, ...], stride: Any, padding: Any,
    output_padding: Any, dilation: Any, groups: Any,
) -> Geometry:  # fmt: skip
    axes = len(shape) - 2
    count = number(groups, "groups")
    if shape[1] != weight[0] or shape[1] % count != 0 or 0 in shape[2:]:
        raise InvalidArgument(
            f"Incompatible dimensions: x has shape {shape}, weight {weight}; weight is "
            f"(channels, outputs / {count}, ...), groups={count} divides the channels, and x has "
            "elements along its axes of space"
        )
    sizes = list(weight[2:])
    strides = numbers(stride, axes, "stride", 1)
    dilations = numbers(dilation, axes, "dilation", 1)
    before = numbers(padding, axes, "padding", 0)
    more = numbers(output_padding, axes, "output_padding", 0)
    require_output_padding(more, strides, dilations)
    out = []
    for n, k, s, p, d, m in zip(shape[2:], sizes, strides, before, dilations, more, strict=True):
        extent = (n - 1) * s - 2 * p + d * (k - 1) + m + 1
        if extent < 1 or extent + p + (k - 1) * d > _MOST:
            raise InvalidArgument(
                f"the result would have {extent} elements along an axis of {n}: kernel {k}, stride "
                f"{s}, padding {p}, dilation {d}; x has shape {shape}, weight {weight}"
            )
        out.append(extent)
    return _made(axes, list(shape[2:]), out, sizes, strides, before, dilations, count)


_memory = functools.lru_cache(maxsize=1024)(lambda make, *arguments: make(*arguments))


def _remembered(make: Callable[..., Geometry], *arguments: Any) -> Geometry:
    """make(*arguments), which takes as long as a launch, once for equal ints: 1.0 is equal, too."""
    if all(_is_plain(each) for each in arguments):
        return cast(Geometry, _memory(make, *arguments))
    return make(*arguments)


def _is_plain(value: Any) -> bool:
    kind = type(value)
    return kind is int or kind is str or (kind is tuple and all(type(e) is int for e in value))


def require_output_padding(more: Any, strides: Any, dilations: Any) -> None:
    """Raises InvalidArgument for an output_padding of a whole step."""
    for m, s, d in zip(more, strides, dilations, strict=True):
        if m >= max(s, d):
            raise InvalidArgument(
                f"output_padding is below stride or dilation, got {m} for stride {s} and "
                f"dilation {d}"
            )


def _made(
    axes: int, extents: list[int], out: list[int], kernel: list[int], stride: list[int],
    padding: list[int], dilation: list[int], groups: int,
) -> Geometry:  # fmt: skip
    ones, zeros = [1] * (2 - axes), [0] * (2 - axes)
    return Geometry(axes, {
        "in": ones + extents, "out": ones + out, "kernel": ones + kernel, "stride": ones + stride,
        "padding": zeros + padding, "dilation": ones + dilation, "groups": groups,
    })  # fmt: skip


def number(value: Any, name: str) -> int:
    """An int above 0."""
    if not hasattr(value, "__index__"):
        raise ArgumentError(f"{name} is an int, got {value!r:.60}")
    return numbers(value, 1, name, 1)[0]


def numbers(value: Any, axes: int, name: str, least: int) -> list[int]:
    """An int, or one for each axis; no bool."""
    given = value if isinstance(value, (tuple, list)) else (value,)
    if any(isinstance(each, bool) for each in given):
        raise ArgumentError(f"{name} is an int or {axes} ints, got {value!r:.60}")
    made = per_axis(value, axes, name)
    for each in made:
        if not least <= each <= _MOST:
            raise InvalidArgument(f"{name} is from {least} to 2^30, got {value!r:.60}")
    return made


def paddings(
    padding: Any, axes: int, sizes: list[int], strides: list[int], dilations: list[int]
) -> list[tuple[int, int]]:
    """Elements in front of each axis and behind it."""
    if padding == "valid":
        return [(0, 0)] * axes
    if isinstance(padding, str):
        if padding != "same":
            raise ArgumentError(f'padding is ints, pairs, "same" or "valid", got {padding!r:.60}')
        if max(strides) > 1:
            raise InvalidArgument(f'padding="same" takes a stride of 1, got {strides}')
        totals = [d * (k - 1) for k, d in zip(sizes, dilations, strict=True)]
        return [(total // 2, total - total // 2) for total in totals]
    given = padding
    if axes == 1 and isinstance(padding, (list, tuple)) and len(padding) == 2:
        given = [padding]
    if isinstance(given, (list, tuple)) and any(isinstance(each, (list, tuple)) for each in given):
        if len(given) != axes:
            raise ArgumentError(f"padding has a pair for each axis, got {padding!r:.60}")
        pairs = [numbers(each, 2, "padding", 0) for each in given]
        return [(before, after) for before, after in pairs]
    return [(each, each) for each in numbers(padding, axes, "padding", 0)]
