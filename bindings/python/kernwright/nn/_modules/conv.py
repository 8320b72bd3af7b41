"""Convolutions with their weights, named, shaped and drawn as torch's."""

from __future__ import annotations

import math
from typing import Any

import kernwright
from kernwright._array.operands import device_array
from kernwright._core import Array
from kernwright.errors import ArgumentError, InvalidArgument
from kernwright.nn._conv import _forward
from kernwright.nn._conv import _geometry as geometry
from kernwright.nn._modules.linear import seeds
from kernwright.nn._modules.module import Module
from kernwright.nn.init import _functions as init

__all__ = ["Conv1d", "Conv2d", "ConvTranspose1d"]


# torch's padding modes, and how kw.pad() calls them.
_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


class _Conv(Module):
    """What convolutions share: the parameters and the text of their settings."""

    axes = 1
    transposed = False

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any,
        dilation: Any, groups: int, bias: bool, padding_mode: str, dtype: Any, seed: int | None,
        device: Any,
    ) -> None:  # fmt: skip
        axes = self.axes
        self.in_channels = geometry.number(in_channels, "in_channels")
        self.out_channels = geometry.number(out_channels, "out_channels")
        self.groups = geometry.number(groups, "groups")
        if self.in_channels % self.groups != 0 or self.out_channels % self.groups != 0:
            raise InvalidArgument(
                f"groups divides in_channels and out_channels, got groups={self.groups} for "
                f"{self.in_channels} and {self.out_channels}"
            )
        self.kernel_size = tuple(geometry.numbers(kernel_size, axes, "kernel_size", 1))
        self.stride = tuple(geometry.numbers(stride, axes, "stride", 1))
        self.dilation = tuple(geometry.numbers(dilation, axes, "dilation", 1))
        pairs = geometry.paddings(
            padding, axes, list(self.kernel_size), list(self.stride), list(self.dilation)
        )
        self._pairs = tuple(pairs)
        self.padding: Any = tuple(pairs)
        if isinstance(padding, str):
            self.padding = padding
        elif all(before == after for before, after in pairs):
            self.padding = tuple(before for before, _ in pairs)
        if padding_mode not in _MODES:
            raise ArgumentError(f"padding_mode is one of {list(_MODES)}, got {padding_mode!r:.60}")
        self.padding_mode = padding_mode
        if not isinstance(bias, bool):
            raise ArgumentError(f"bias is True or False, got {bias!r:.60}")
        ends = (self.in_channels, self.out_channels)
        first, second = ends if self.transposed else ends[::-1]
        shape = (first, second // self.groups, *self.kernel_size)
        bound = 1.0 / math.sqrt(math.prod(shape[1:]))
        draws = {"dtype": dtype, "device": device}
        of_weight, of_bias = seeds(seed, 2)
        self.weight = init.uniform(shape, -bound, bound, seed=of_weight, **draws)
        self.bias = None
        if bias:
            self.bias = init.uniform(self.out_channels, -bound, bound, seed=of_bias, **draws)

    def _padded(self, x: Any) -> tuple[Any, Any]:
        """x with the elements around it that are no zeros, and the padding that is left."""
        if self.padding_mode == "zeros":
            return x, self.padding
        array = device_array(x, "x")
        around = [(0, 0)] * (array.ndim - self.axes) + list(self._pairs)
        return kernwright.pad(array, around, _MODES[self.padding_mode]), 0

    def extra_repr(self) -> str:
        """The extents and settings that repr() shows, those that are not the usual ones."""
        ones, zeros = (1,) * self.axes, (0,) * self.axes
        settings: dict[str, tuple[Any, Any]] = {  # the value, and the usual one
            "kernel_size": (self.kernel_size, None),
            "stride": (self.stride, None),
            "padding": (self.padding, zeros),
            "dilation": (self.dilation, ones),
            "output_padding": (getattr(self, "output_padding", zeros), zeros),
            "groups": (self.groups, 1),
            "bias": (self.bias is not None, True),
            "padding_mode": (self.padding_mode, "zeros"),
        }
        text = ", ".join(f"{k}={value}" for k, (value, usual) in settings.items() if value != usual)
        return f"{self.in_channels}, {self.out_channels}, {text}"


class _PlainConv(_Conv):
    """A convolution that is not transposed, by the function for its axes of space."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", *, dtype: Any = None, seed: int | None = None,
        device: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
                         bias, padding_mode, dtype, seed, device)  # fmt: skip

    def __call__(self, x: Any) -> Array:
        padded, padding = self._padded(x)
        convolve = getattr(_forward, f"conv{self.axes}d")
        made: Array = convolve(
            padded, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )
        return made


class Conv1d(_PlainConv):
    """kw.nn.conv1d() of sequences (N, in_channels, L) or (in_channels, L): the arguments, weight
    (out_channels, in_channels / groups, kernel_size) and bias (out_channels,) are those of torch.

    Weight and bias begin as uniform numbers within 1 / sqrt(in_channels / groups * kernel_size),
    from `seed` or from the generator of kw.random. padding_mode is "zeros", "reflect", "replicate"
    or "circular"; all but the first make a copy of x. Raises InvalidArgument for extents below 1
    and `groups` that does not divide the channels, ArgumentError for other types.

    >>> kw.nn.Conv1d(80, 384, 3, padding=1)(kw.ones((1, 80, 30))).shape
    (1, 384, 30)
    """


class Conv2d(_PlainConv):
    """kw.nn.conv2d() of images (N, in_channels, H, W): as Conv1d, with one number for both axes of
    space or one for each.

    >>> kw.nn.Conv2d(3, 8, 3, stride=2, padding=1)(kw.ones((1, 3, 8, 6))).shape
    (1, 8, 4, 3)
    """

    axes = 2


class ConvTranspose1d(_Conv):
    """kw.nn.conv_transpose1d() of sequences (N, in_channels, L): an upsampling by `stride`. The
    weight is (in_channels, out_channels / groups, kernel_size); as in torch both parameters begin
    within 1 / sqrt(out_channels / groups * kernel_size).

    >>> kw.nn.ConvTranspose1d(16, 8, 4, stride=2, padding=1)(kw.ones((1, 16, 30))).shape
    (1, 8, 60)
    """

    transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias: bool = True,
        dilation: Any = 1, *, dtype: Any = None, seed: int | None = None, device: Any = None,
    ) -> None:  # fmt: skip
        padding = tuple(geometry.numbers(padding, 1, "padding", 0))
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
                         bias, "zeros", dtype, seed, device)  # fmt: skip
        self.output_padding = tuple(geometry.numbers(output_padding, 1, "output_padding", 0))
        geometry.require_output_padding(self.output_padding, self.stride, self.dilation)

    def __call__(self, x: Any) -> Array:
        return _forward.conv_transpose1d(
            x, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups,
            self.dilation,
        )  # fmt: skip
