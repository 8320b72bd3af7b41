"""Convolutions of models of speech beside torch (cuDNN), forward and backward.

Shapes: the stem of Whisper, Silero VAD for 1000 streams, the blocks of Kokoro (istftnet) and of
HiFi-GAN for 10 s, depthwise convolutions of FastConformer. Subjects take turns as graphs of
launches over rotating operands (replays.py), torch with cudnn.benchmark. Sampled elements of each
result are compared with sums in float64. The simulated device checks only the results, with small
shapes.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import replays
from attention_shared import torch_names

import harness
import kernwright as kw

SAMPLES = 48
# The error may be this share of the sampled elements' norm: sums are float32, and results are
# rounded to the dtype.
TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-5, "tf32": 2e-3}


class Layer(NamedTuple):
    """A convolution of sequences; `up`: a transposed one."""

    name: str
    batch: int
    channels: int
    length: int
    outputs: int
    kernel: int
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    groups: int = 1
    up: bool = False

    def out(self) -> int:
        reach = self.dilation * (self.kernel - 1) + 1
        if self.up:
            return (self.length - 1) * self.stride - 2 * self.padding + reach
        return (self.length + 2 * self.padding - reach) // self.stride + 1

    def flops(self) -> float:
        places = self.length if self.up else self.out()
        return 2.0 * self.batch * places * self.outputs * self.channels * self.kernel / self.groups

    def shapes(self) -> list[tuple[int, ...]]:
        """Of x, weight, bias and the result's gradient."""
        first, second = self.outputs, self.channels
        if self.up:
            first, second = second, first
        return [(self.batch, self.channels, self.length),
                (first, second // self.groups, self.kernel), (self.outputs,),
                (self.batch, self.outputs, self.out())]  # fmt: skip


def blocks(name: str, channels: int, length: int) -> list[Layer]:
    """Dilated convolutions of residual blocks."""
    return [
        Layer(f"{name} k{k} d{d}", 1, channels, length, channels, k, 1, d * (k - 1) // 2, d)
        for k, d in ((3, 1), (7, 3), (11, 1), (11, 5))
    ]


LAYERS = [
    *(Layer(f"Whisper large stem 1, B {n}", n, 128, 3000, 1280, 3, 1, 1) for n in (1, 16)),
    *(Layer(f"Whisper large stem 2, B {n}", n, 1280, 3000, 1280, 3, 2, 1) for n in (1, 16)),
    Layer("Whisper tiny stem 1", 1, 80, 3000, 384, 3, 1, 1),
    Layer("Whisper tiny stem 2", 1, 384, 3000, 384, 3, 2, 1),
    Layer("Silero STFT", 1000, 1, 640, 258, 256, 128),
    Layer("Silero encoder 1", 1000, 129, 4, 128, 3, 1, 1),
    Layer("Silero encoder 2", 1000, 128, 4, 64, 3, 2, 1),
    Layer("Silero encoder 4", 1000, 64, 1, 128, 3, 1, 1),
    Layer("Silero output", 1000, 128, 1, 1, 1),
    Layer("Kokoro up 1", 1, 512, 800, 256, 20, 10, 5, up=True),
    *blocks("Kokoro block 1", 256, 8000),
    Layer("Kokoro up 2", 1, 256, 8000, 128, 12, 6, 3, up=True),
    *blocks("Kokoro block 2", 128, 48000),
    Layer("Kokoro output", 1, 128, 48000, 22, 7, 1, 3),
    Layer("HiFi-GAN input", 1, 80, 860, 512, 7, 1, 3),
    Layer("HiFi-GAN up 1", 1, 512, 860, 256, 16, 8, 4, up=True),
    Layer("HiFi-GAN up 2", 1, 256, 6880, 128, 16, 8, 4, up=True),
    Layer("HiFi-GAN up 4", 1, 64, 110080, 32, 4, 2, 1, up=True),
    *blocks("HiFi-GAN block 4", 32, 220160),
    Layer("HiFi-GAN output", 1, 32, 220160, 1, 7, 1, 3),
    *(Layer(f"FastConformer depthwise, B {n}", n, 512, 375, 512, 9, 1, 4, 1, 512) for n in (1, 32)),
    Layer("1x1", 8, 512, 1500, 1024, 1),
]
BACKWARD = ("Whisper large stem", "Kokoro block 2 k7", "HiFi-GAN up 2", "depthwise, B 32", "1x1")
SMALL = [
    Layer("stem", 2, 40, 50, 64, 3, 2, 1),
    Layer("dilated", 1, 32, 60, 32, 7, 1, 9, 3),
    Layer("up", 1, 48, 20, 24, 8, 4, 2, up=True),
    Layer("depthwise", 2, 32, 30, 32, 9, 1, 4, 1, 32),
]


def operands(layer: Layer, dtype: str, copy: int = 0) -> list[kw.Array]:
    """x, weight, bias and a gradient of the result, normal numbers."""
    terms = layer.channels * layer.kernel / layer.groups
    scales = (1.0, terms**-0.5, 1.0, 1.0)
    return [
        kw.random.normal(shape=shape, dtype="float32", std=scale, seed=4 * copy + i).astype(dtype)
        for i, (shape, scale) in enumerate(zip(layer.shapes(), scales, strict=True))
    ]


def ours(layer: Layer, arrays: list[kw.Array], tf32: bool, backward: bool) -> Callable[[], Any]:
    x, weight, bias, dy = arrays
    options: dict[str, Any] = {"stride": layer.stride, "padding": layer.padding,
                               "dilation": layer.dilation, "groups": layer.groups,
                               "precision": "tf32" if tf32 else None}  # fmt: skip
    if backward:
        gradients = kw.nn.conv_transpose1d_backward if layer.up else kw.nn.conv1d_backward
        return lambda: gradients(dy, x, weight, **options)
    forward = kw.nn.conv_transpose1d if layer.up else kw.nn.conv1d
    return lambda: forward(x, weight, bias, **options)


def theirs(layer: Layer, arrays: list[kw.Array], tf32: bool, backward: bool) -> Callable[[], Any]:
    torch = torch_names()
    x, weight, bias, dy = (torch.from_dlpack(each) for each in arrays)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = tf32
    padding, given = layer.padding, (layer.stride, layer.padding, layer.dilation, layer.groups)
    if backward:
        return lambda: torch.ops.aten.convolution_backward(
            dy, x, weight, [layer.outputs], [layer.stride], [padding], [layer.dilation], layer.up,
            [0], layer.groups, [True, True, True],
        )  # fmt: skip
    functional = torch.nn.functional
    if layer.up:
        return lambda: functional.conv_transpose1d(x, weight, bias, layer.stride, padding, 0,
                                                   layer.groups, layer.dilation)  # fmt: skip
    return lambda: functional.conv1d(x, weight, bias, *given)


class Host:
    """The operands on the host, and single elements of results in float64."""

    def __init__(self, layer: Layer, arrays: list[kw.Array]) -> None:
        self.layer = layer
        self.x, self.weight, self.bias, self.dy = (each.numpy() for each in arrays)

    def gathered(self, source: np.ndarray, n: int, group: int, first: int) -> Any:
        """The inputs (channels of a group, taps) of an output of a convolution."""
        layer = self.layer
        width = source.shape[1] // layer.groups
        places = first + np.arange(layer.kernel) * layer.dilation
        inside = (places >= 0) & (places < source.shape[2])
        rows = source[n, group * width : (group + 1) * width]
        return rows[:, np.where(inside, places, 0)].astype(np.float64) * inside

    def spread(self, source: np.ndarray, n: int, group: int, at: int) -> Any:
        """The inputs (channels of a group, taps) of an output of a transposed convolution."""
        layer = self.layer
        width = source.shape[1] // layer.groups
        reach = at + layer.padding - np.arange(layer.kernel) * layer.dilation
        places = reach // layer.stride
        inside = (reach % layer.stride == 0) & (places >= 0) & (places < source.shape[2])
        rows = source[n, group * width : (group + 1) * width]
        return rows[:, np.where(inside, places, 0)].astype(np.float64) * inside

    def convolved(self, source: np.ndarray, n: int, channel: int, at: int, up: bool) -> float:
        """An element of the (transposed) convolution of x or dy with the weights."""
        layer, weight = self.layer, self.weight
        if up:
            group, column = divmod(channel, weight.shape[1])
            width = weight.shape[0] // layer.groups
            factors = weight[group * width : (group + 1) * width, column]
            values = self.spread(source, n, group, at)
        else:
            group = channel // (weight.shape[0] // layer.groups)
            factors = weight[channel]
            values = self.gathered(source, n, group, at * layer.stride - layer.padding)
        return float((values * factors.astype(np.float64)).sum())

    def weight_gradient(self, first: int, second: int, tap: int) -> float:
        """Of weight[first, second, tap]: the small side's places meet those of the long one."""
        layer = self.layer
        small, long = (self.x, self.dy) if layer.up else (self.dy, self.x)
        group = first // (small.shape[1] // layer.groups)
        channel = group * self.weight.shape[1] + second
        places = np.arange(small.shape[2]) * layer.stride - layer.padding + tap * layer.dilation
        inside = (places >= 0) & (places < long.shape[2])
        return float((small[:, first][:, inside].astype(np.float64)
                      * long[:, channel][:, places[inside]].astype(np.float64)).sum())  # fmt: skip


def relative_error(
    layer: Layer, arrays: list[kw.Array], results: list[Any], backward: bool
) -> float:
    """||got - expected|| / ||expected|| of sampled elements, the largest of the results."""
    host, rng, errors = Host(layer, arrays), np.random.default_rng(0), []
    if backward:
        functions = [
            lambda at: host.convolved(host.dy, *at, not layer.up),
            lambda at: host.weight_gradient(*at),
            lambda at: host.dy[:, at[0]].astype(np.float64).sum(),
        ]
    else:
        functions = [lambda at: host.convolved(host.x, *at, layer.up) + float(host.bias[at[1]])]
    for result, function in zip(results, functions, strict=True):
        got = result.numpy()
        places = [tuple(int(rng.integers(n)) for n in got.shape) for _ in range(SAMPLES)]
        made = np.array([function(at) for at in places])
        found = np.array([float(got[at]) for at in places])
        errors.append(np.linalg.norm(found - made) / np.linalg.norm(made))
    return float(np.max(errors))


def measure(layer: Layer, kind: str, backward: bool, timed: bool) -> dict[str, Any]:
    dtype, tf32 = ("float32", True) if kind == "tf32" else (kind, False)
    arrays = operands(layer, dtype)
    made = ours(layer, arrays, tf32, backward)()
    row: dict[str, Any] = {
        "subject": "backward" if backward else "forward", "type": kind, **layer._asdict(),
    }  # fmt: skip
    row["error"] = relative_error(layer, arrays, list(made) if backward else [made], backward)
    row["correct"] = row["error"] <= TOLERANCE[kind]
    if not timed:
        return row
    count = min(replays.copy_count(sum(each.nbytes for each in arrays)), 36)
    copies = [operands(layer, dtype, copy) for copy in range(count)]
    runs = [ours(layer, each, tf32, backward) for each in copies]
    makers: dict[str, replays.Maker] = {"ours": lambda: replays.Ours(runs)}
    if torch_names() is not None:
        peers = [theirs(layer, each, tf32, backward) for each in copies]
        makers["torch"] = lambda: replays.Theirs(torch_names(), peers)
    flops = layer.flops() * (2 if backward else 1)
    times = replays.figures(makers)
    for title, taken in times.items():
        row[title] = taken
        if not isinstance(taken, dict):
            row[title] = {"us": round(taken, 2), "TFLOP/s": round(flops / taken / 1e6, 2)}
    if all(not isinstance(taken, dict) for taken in times.values()) and "torch" in times:
        row["torch / ours"] = round(times["torch"] / times["ours"], 3)  # type: ignore[operator]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    default = harness.RESULTS / "conv.json"
    parser.add_argument("-o", "--output", type=pathlib.Path, default=default)
    parser.add_argument("--types", default="bfloat16,float32,tf32")
    parser.add_argument("--layers", default="", help="those whose names have this text")
    parser.add_argument("--forward", action="store_true", help="the forward pass alone")
    options = parser.parse_args()
    timed = not kw.current_device().is_simulated
    found = [each for each in (LAYERS if timed else SMALL) if options.layers in each.name]
    work: list[tuple[Layer, str, bool]] = []
    for kind in options.types.split(","):
        work += [(layer, kind, False) for layer in found]
        if not options.forward:
            trained = [each for each in found if not timed or any(n in each.name for n in BACKWARD)]
            work += [(layer, kind, True) for layer in trained]
    rows: list[dict[str, Any]] = []
    document = {"subject": "conv", "machine": harness.machine()}
    report = functools.partial(print, file=sys.stderr, flush=True)
    for layer, kind, backward in work:
        rows.append(measure(layer, kind, backward, timed))
        report(json.dumps(rows[-1]))
        document |= {"rows": rows, "correct": all(row["correct"] for row in rows)}
        harness.save(options.output, document)  # a time limit loses none
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
