"""Windows of poolings: their sizes along one to three axes of space, checked."""

from __future__ import annotations

import operator
from math import prod
from typing import Any, NamedTuple

from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument

_MOST = 2**31 - 1


class Windows(NamedTuple):
    """Windows over `axes` axes, and their description for the extension, which has three."""

    axes: int
    given: dict[str, Any]

    @property
    def out(self) -> tuple[int, ...]:
        """The extents of the result along its axes of space."""
        return tuple(self.given["out"][3 - self.axes :])


def planes(x: Any, axes: int, name: str = "x") -> Array:
    """`x` as an array with at least these axes of space and one of channels."""
    array = device_array(x, name)
    if array.ndim < axes + 1:
        raise InvalidArgument(
            f"{name} is (channels, {'height, width' if axes == 2 else 'length'}) or has axes "
            f"before these, got shape {array.shape}"
            if axes < 3
            else f"{name} has at least 4 axes, got shape {array.shape}"
        )
    return array


def fold(x: Array, axes: int) -> Array:
    """(planes, depth, height, width) of an array, missing axes of space with one element."""
    space = x.shape[x.ndim - axes :]
    return x.reshape((prod(x.shape[: x.ndim - axes]), *(1,) * (3 - axes), *space))


def unfold(y: Array, before: tuple[int, ...], space: tuple[int, ...]) -> Array:
    """fold() undone, with the leading axes `before`."""
    return y.reshape((*before, *space))


def per_axis(value: Any, axes: int, name: str) -> list[int]:
    """An int, or one for each axis."""
    given = [value] * axes if hasattr(value, "__index__") else value
    try:
        made = [operator.index(each) for each in given]
    except TypeError:
        raise ArgumentError(f"{name} is an int or {axes} ints, got {value!r:.60}") from None
    if len(made) != axes:
        raise ArgumentError(f"{name} is an int or {axes} ints, got {value!r:.60}")
    return made


def numbers(value: Any, axes: int, name: str, least: int) -> list[int]:
    """An int, or one for each axis, as three."""
    made = per_axis(value, axes, name)
    for each in made:
        if not least <= each <= _MOST:
            raise InvalidArgument(f"{name} is at least {least}, got {value!r}")
    return [least] * (3 - axes) + made


def windows(
    space: tuple[int, ...], size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
    count_padding: bool = True, divisor: int | None = None,
) -> Windows:  # fmt: skip
    """Windows of one size, as torch places them."""
    axes = len(space)
    sizes = numbers(size, axes, "kernel_size", 1)
    strides = sizes if stride is None else numbers(stride, axes, "stride", 1)
    paddings = numbers(padding, axes, "padding", 0)
    dilations = numbers(dilation, axes, "dilation", 1)
    extents = [1] * (3 - axes) + list(space)
    out = []
    for n, k, s, p, d in zip(extents, sizes, strides, paddings, dilations, strict=True):
        if 2 * p > k:
            raise InvalidArgument(f"padding is at most half of kernel_size, got {p} and {k}")
        room = n + 2 * p - d * (k - 1) - 1
        if room < 0 or n > _MOST:
            raise InvalidArgument(
                f"a window of {k} with dilation {d} does not fit {n} elements with padding {p}"
            )
        count = (-(-room // s) if ceil_mode else room // s) + 1
        if ceil_mode and (count - 1) * s >= n + p:  # it would lie on the padding alone
            count -= 1
        out.append(count)
    if divisor is not None and not 0 < operator.index(divisor) <= _MOST:
        raise InvalidArgument(f"divisor_override is above 0, got {divisor}")
    return Windows(axes, {
        "in": extents, "out": out, "size": sizes, "stride": strides, "padding": paddings,
        "dilation": dilations, "divisor": divisor or 0, "adaptive": False,
        "count_padding": bool(count_padding),
    })  # fmt: skip


def adaptive_windows(space: tuple[int, ...], output_size: Any) -> Windows:
    """Windows that share the elements out to `output_size`; None keeps an axis."""
    axes = len(space)
    given = [output_size] * axes if hasattr(output_size, "__index__") else output_size
    if not isinstance(given, (list, tuple)) or len(given) != axes:
        raise ArgumentError(f"output_size is an int or {axes} of them, got {output_size!r:.60}")
    wanted = [n if each is None else each for each, n in zip(given, space, strict=True)]
    out = numbers(wanted, axes, "output_size", 1)
    if 0 in space:
        raise InvalidArgument(f"there is nothing to pool in planes of {space}")
    ones = [1, 1, 1]
    return Windows(axes, {
        "in": [1] * (3 - axes) + list(space), "out": out,
        "size": ones, "stride": ones, "padding": [0, 0, 0], "dilation": ones, "divisor": 0,
        "adaptive": True, "count_padding": False,
    })  # fmt: skip
