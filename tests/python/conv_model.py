"""Convolutions in NumPy by loops over taps, and the shapes that the tests share."""

from typing import NamedTuple

import numpy as np


def _group(array, axis, group, groups):
    return np.split(array, groups, axis)[group]


def convolved(x, weight, bias, stride, padding, dilation, groups):
    """Of x (n, c, y, x); `padding` has a pair for each axis."""
    padded = np.pad(x, ((0, 0), (0, 0), *padding))
    taps = weight.shape[2:]
    out = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(padded.shape[2:], taps, stride, dilation, strict=True)
    ]
    y = np.zeros((x.shape[0], weight.shape[0], *out))
    for group in range(groups):
        inputs, weights = _group(padded, 1, group, groups), _group(weight, 0, group, groups)
        target = _group(y, 1, group, groups)
        for a, b in np.ndindex(*taps):
            rows, columns = (
                slice(at * d, at * d + (m - 1) * s + 1, s)
                for at, d, m, s in zip((a, b), dilation, out, stride, strict=True)
            )
            target += np.einsum("nchw,oc->nohw", inputs[:, :, rows, columns], weights[:, :, a, b])
    return y if bias is None else y + bias[:, None, None]


def convolved_transposed(x, weight, bias, stride, padding, more, dilation, groups):
    """Of x (n, c, y, x) and weight (c, outputs / groups, ...)."""
    taps = weight.shape[2:]
    full = [
        (n - 1) * s + d * (k - 1) + 1 + m
        for n, k, s, d, m in zip(x.shape[2:], taps, stride, dilation, more, strict=True)
    ]
    y = np.zeros((x.shape[0], weight.shape[1] * groups, *full))
    for group in range(groups):
        inputs, weights = _group(x, 1, group, groups), _group(weight, 0, group, groups)
        target = _group(y, 1, group, groups)
        for a, b in np.ndindex(*taps):
            rows, columns = (
                slice(at * d, at * d + (n - 1) * s + 1, s)
                for at, d, n, s in zip((a, b), dilation, x.shape[2:], stride, strict=True)
            )
            target[:, :, rows, columns] += np.einsum("nchw,co->nohw", inputs, weights[:, :, a, b])
    y = y[:, :, padding[0] : full[0] - padding[0], padding[1] : full[1] - padding[1]]
    return y if bias is None else y + bias[:, None, None]


class Conv(NamedTuple):
    """A convolution: extents of x, of the kernel, and the arguments, each per axis of space."""

    shape: tuple[int, ...]  # n, channels, extents
    outputs: int
    kernel: tuple[int, ...]
    stride: tuple[int, ...] = (1,)
    padding: tuple[int, ...] = (0,)
    dilation: tuple[int, ...] = (1,)
    groups: int = 1
    more: tuple[int, ...] = (0,)  # output_padding of a transposed one

    @property
    def axes(self):
        return len(self.kernel)

    def both(self, name, missing):
        """An argument for two axes."""
        given = getattr(self, name)
        given = given * self.axes if len(given) == 1 else given
        return (missing,) * (2 - self.axes) + tuple(given)

    def plane(self, array):
        return array if self.axes == 2 else array[:, :, None]

    def line(self, array):
        return array if self.axes == 2 else array[:, :, 0]

    def weight_shape(self, transposed=False):
        channels = self.shape[1]
        first = (channels, self.outputs) if transposed else (self.outputs, channels)
        return (first[0], first[1] // self.groups, *self.kernel)

    def values(self, seed=0, transposed=False):
        """x, weight and bias in float64; sums have the size of one."""
        rng = np.random.default_rng(seed)
        shape = self.weight_shape(transposed)
        scale = np.sqrt(self.shape[1] / self.groups * np.prod(self.kernel))
        return (rng.normal(size=self.shape), rng.normal(size=shape) / scale,
                rng.normal(size=self.outputs))  # fmt: skip

    def forward(self, x, weight, bias=None):
        pairs = [(p, p) for p in self.both("padding", 0)]
        made = convolved(self.plane(x), self.plane(weight), bias, self.both("stride", 1), pairs,
                         self.both("dilation", 1), self.groups)  # fmt: skip
        return self.line(made)

    def transposed(self, x, weight, bias=None):
        made = convolved_transposed(
            self.plane(x), self.plane(weight), bias, self.both("stride", 1),
            self.both("padding", 0), self.both("more", 0), self.both("dilation", 1), self.groups,
        )  # fmt: skip
        return self.line(made)

    def arguments(self):
        """stride, padding, dilation, groups, as conv1d() and conv2d() take them."""
        given = [self.both(name, 0)[-self.axes :] for name in ("stride", "padding", "dilation")]
        return *given, self.groups


# Products: at least five outputs a group and sums of more than 32.
PRODUCTS = {
    "same length": Conv((2, 16, 17), 12, (3,), padding=(1,)),
    "odd": Conv((2, 13, 23), 11, (5,), (2,), (3,)),
    "padding above the kernel": Conv((1, 16, 5), 9, (3,), padding=(7,)),
    "stride above the kernel": Conv((1, 17, 23), 12, (2,), (7,), (5,)),
    "dilation": Conv((2, 16, 23), 12, (3,), (1,), (2,), (3,)),
    "stride and dilation": Conv((2, 16, 23), 12, (3,), (6,), (2,), (4,)),
    "few outputs of a dilation": Conv((1, 16, 9), 12, (2,), dilation=(7,)),
    "one tap": Conv((2, 48, 11), 12, (1,)),
    "one tap and a stride": Conv((2, 48, 11), 12, (1,), (2,)),
    "groups": Conv((2, 32, 11), 16, (3,), groups=2),
    "a product an image": Conv((3, 13, 150), 9, (5,), padding=(2,)),
    "a product an image and group": Conv((2, 32, 270), 16, (3,), (2,), groups=2),
    "one channel": Conv((2, 1, 150), 20, (64,), (32,), (9,)),
    "planes": Conv((2, 16, 9, 11), 12, (3, 5), (2, 1), (1, 3), (1, 2)),
    # Taps that meet padding alone: behind, in front, on both sides; one element leaves one tap.
    "idle taps": Conv((2, 16, 3), 12, (5,), (4,), (4,)),
    "idle taps in front": Conv((1, 40, 6), 9, (4,), (9,), (3,), (2,)),
    "idle taps of planes": Conv((2, 16, 1, 7), 12, (3, 3), (1, 1), (1, 2)),
    "one element": Conv((5, 70, 1), 9, (3,), padding=(1,)),
    "one element of groups": Conv((5, 70, 1), 14, (3,), padding=(1,), groups=2),
    "planes of groups": Conv((1, 32, 9, 11), 16, (3, 3), (1, 2), (1, 0), (3, 3), 2),
}
# A thread for each output.
DIRECT = {
    "depthwise": Conv((3, 8, 19), 8, (7,), (2,), (3,), (2,), groups=8),
    "two outputs a channel": Conv((1, 5, 9), 10, (3,), groups=5),
    "few channels": Conv((2, 3, 7, 9), 4, (3, 3), (1, 2), (1, 0), (2, 1)),
    "one output": Conv((1, 16, 13), 1, (7,), padding=(3,)),
    "long rows": Conv((2, 3, 3, 270), 3, (2, 5), (1, 2), (1, 3), (2, 3)),
    "two outputs of long rows": Conv((1, 4, 131), 8, (9,), padding=(4,), groups=4),
    "one output of one element": Conv((9, 33, 1), 1, (1,)),
    "taps of two blocks": Conv((1, 210, 20), 210, (19,), (1,), (9,), groups=210),
}
UPSAMPLINGS = {
    "twice": Conv((2, 16, 11), 12, (4,), (2,), (1,)),
    "odd": Conv((2, 17, 7), 11, (5,), (3,), (2,), more=(1,)),
    "no stride": Conv((2, 16, 11), 12, (3,), (1,), (2,), (3,)),
    "no stride, long": Conv((2, 16, 140), 12, (3,), (1,), (2,)),
    "stride and dilation": Conv((1, 16, 7), 12, (3,), (4,), (2,), (6,), more=(5,)),
    "stride above the kernel": Conv((1, 34, 7), 12, (2,), (5,)),
    "many taps and channels": Conv((1, 70, 3), 9, (45,), (5,), (2,)),
    "groups": Conv((2, 32, 7), 16, (4,), (2,), (1,), groups=2),
    "one tap": Conv((1, 48, 7), 12, (1,)),
    "depthwise": Conv((2, 6, 9), 6, (4,), (2,), (3,), (3,), groups=6, more=(2,)),
    "depthwise, no stride": Conv((2, 6, 9), 12, (4,), (1,), (2,), (3,), groups=6),
    "long rows, no stride": Conv((1, 6, 197), 3, (3,), padding=(1,), groups=3),
}
