"""LSTM and GRU of models of speech beside torch (cuDNN), forward and backward.

Shapes: the LSTM of Silero VAD for one step and 100, one stream and 64; the LSTMs of Kokoro in two
directions; training of larger layers. Subjects take turns: "device" is the time of the device for a
call, "call" the time of a call and of the wait for it, "graph" a launch of a recorded graph
(replays.py), which shorter sequences have. torch is measured with float32 products (allow_tf32
off), and once more with tf32. Results are compared with a loop in float64. The simulated device
checks only the results, with small shapes.
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
from attention_shared import time_in_turn, torch_names

import harness
import kernwright as kw

# The error may be this share of a result's norm: sums are float32, and states are rounded to the
# dtype at each step.
TOLERANCE = {"float16": 5e-3, "bfloat16": 3e-2, "float32": 1e-5}
GATES = {"lstm": 4, "gru": 3}
GRAPH_STEPS = 100  # longer sequences are thousands of launches of torch's
COPIES = 9


class Layer(NamedTuple):
    """One layer in one direction or two."""

    name: str
    length: int
    batch: int
    inputs: int
    hidden: int
    directions: int = 1
    cell: str = "lstm"

    def flops(self) -> float:
        rows = GATES[self.cell] * self.hidden * self.directions
        return 2.0 * self.length * self.batch * rows * (self.inputs + self.hidden)


def named(name: str, length: int, batch: int, *sizes: int, cell: str = "lstm") -> Layer:
    return Layer(f"{name}, {length} steps, batch {batch}", length, batch, *sizes, cell=cell)


LAYERS = [
    *(named("Silero VAD", length, batch, 128, 128) for length in (1, 100) for batch in (1, 64)),
    *(named("Kokoro", length, 1, 512, 256, 2) for length in (100, 300, 500)),
    named("GRU", 100, 16, 256, 256, 2, cell="gru"),
    named("training", 200, 32, 256, 256, 2),
    named("large", 100, 32, 512, 512),
]
BACKWARD = ("100 steps", "200 steps")
SMALL = [
    named("step", 1, 3, 8, 16),
    named("both", 6, 2, 8, 16, 2),
    named("gru", 5, 3, 8, 12, 2, cell="gru"),
]


def operands(layer: Layer, dtype: str, copy: int = 0) -> list[kw.Array]:
    """x, a gradient of the output, and the weights."""
    rows, wide = GATES[layer.cell] * layer.hidden, layer.directions * layer.hidden
    shapes: list[tuple[int, ...]] = [
        (layer.length, layer.batch, layer.inputs), (layer.length, layer.batch, wide)
    ]  # fmt: skip
    shapes += [(rows, layer.inputs), (rows, layer.hidden), (rows,), (rows,)] * layer.directions
    bound = layer.hidden**-0.5
    made = []
    for i, shape in enumerate(shapes):
        seed = 40 * copy + i
        if i < 2:
            made.append(kw.random.normal(shape=shape, dtype="float32", seed=seed))
        else:
            made.append(kw.random.uniform(shape, "float32", low=-bound, high=bound, seed=seed))
    return [each.astype(dtype) for each in made]


def ours(layer: Layer, arrays: list[kw.Array], backward: bool) -> Callable[[], Any]:
    x, grad, *weights = arrays
    options = {"bidirectional": layer.directions == 2}
    forward = getattr(kw.nn, layer.cell)
    if not backward:
        return lambda: forward(x, None, weights, **options)
    function = getattr(kw.nn, f"{layer.cell}_backward")
    reserve = forward(x, None, weights, **options, reserve=True)[2]
    return lambda: function(grad, x, None, weights, **options, reserve=reserve)


def theirs(layer: Layer, arrays: list[kw.Array], backward: bool, tf32: bool) -> Callable[[], Any]:
    torch = torch_names()
    x, grad, *weights = (torch.from_dlpack(each) for each in arrays)
    kind = torch.nn.LSTM if layer.cell == "lstm" else torch.nn.GRU
    net = kind(layer.inputs, layer.hidden, bidirectional=layer.directions == 2)
    net = net.to(device=x.device, dtype=x.dtype)
    with torch.no_grad():
        for parameter, given in zip(net.parameters(), weights, strict=True):
            parameter.copy_(given)
    net.flatten_parameters()

    def forward() -> Any:
        torch.backends.cudnn.allow_tf32 = tf32
        with torch.no_grad():
            return net(x)

    if not backward:
        return forward
    torch.backends.cudnn.allow_tf32 = tf32
    given = x.detach().requires_grad_()
    output = net(given)[0]
    wanted = [given, *net.parameters()]

    def gradients() -> Any:
        torch.backends.cudnn.allow_tf32 = tf32
        return torch.autograd.grad(output, wanted, grad, retain_graph=True)

    return gradients


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


class Host:
    """A direction in float64: the loop, and the loop back."""

    def __init__(self, layer: Layer, x: np.ndarray, weights: list[np.ndarray], order: Any) -> None:
        self.layer, self.weights, self.order = layer, weights, order
        self.x = x
        w_ih, w_hh, b_ih, b_hh = weights
        h = c = np.zeros((layer.batch, layer.hidden))
        self.output = np.zeros((layer.length, layer.batch, layer.hidden))
        self.kept: dict[int, Any] = {}
        for t in order:
            a, p = x[t] @ w_ih.T + b_ih, h @ w_hh.T + b_hh
            before = (h, c)
            if layer.cell == "lstm":
                i, f, g, o = np.split(a + p, 4, -1)
                i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
                c = f * c + i * g
                h, gates = o * np.tanh(c), (i, f, g, o, np.tanh(c))
            else:
                (xr, xz, xn), (hr, hz, hn) = np.split(a, 3, -1), np.split(p, 3, -1)
                r, z = sigmoid(xr + hr), sigmoid(xz + hz)
                n = np.tanh(xn + r * hn)
                h, gates = (1 - z) * n + z * h, (r, z, n, hn)
            self.output[t] = h
            self.kept[t] = (before, gates)

    def gradients(self, grad: np.ndarray) -> list[np.ndarray]:
        """Of x and of the weights."""
        w_ih, w_hh = self.weights[:2]
        made = [np.zeros_like(each) for each in (self.x, *self.weights)]
        dh = dc = np.zeros((self.layer.batch, self.layer.hidden))
        for t in reversed(self.order):
            (h, c), gates = self.kept[t]
            dh = dh + grad[t]
            if self.layer.cell == "lstm":
                i, f, g, o, tanh_c = gates
                dc = dc + dh * o * (1 - tanh_c**2)
                parts = [dc * g * i * (1 - i), dc * c * f * (1 - f), dc * i * (1 - g**2),
                         dh * tanh_c * o * (1 - o)]  # fmt: skip
                da = dp = np.concatenate(parts, -1)
                dc, rest = dc * f, 0.0
            else:
                r, z, n, hn = gates
                dn = dh * (1 - z) * (1 - n**2)
                parts = [dn * hn * r * (1 - r), dh * (h - n) * z * (1 - z)]
                da = np.concatenate([*parts, dn], -1)
                dp, rest = np.concatenate([*parts, dn * r], -1), dh * z
            made[0][t] = da @ w_ih
            made[1] += da.T @ self.x[t]
            made[2] += dp.T @ h
            made[3] += da.sum(0)
            made[4] += dp.sum(0)
            dh = dp @ w_hh + rest
        return made


def expected(layer: Layer, arrays: list[kw.Array], backward: bool) -> list[np.ndarray]:
    """The output, or the gradients of x and of the weights."""
    x, grad, *weights = (each.astype("float64").numpy() for each in arrays)
    orders = [range(layer.length), range(layer.length)[::-1]]
    ways = [
        Host(layer, x, weights[4 * way : 4 * way + 4], orders[way])
        for way in range(layer.directions)
    ]
    if not backward:
        return [np.concatenate([way.output for way in ways], -1)]
    parts = np.split(grad, layer.directions, -1)
    made = [way.gradients(part) for way, part in zip(ways, parts, strict=True)]
    x_gradient = np.sum([each[0] for each in made], axis=0)
    return [x_gradient, *(array for each in made for array in each[1:])]


def relative_error(layer: Layer, arrays: list[kw.Array], result: Any, backward: bool) -> float:
    """||got - expected|| / ||expected||, the largest of the results."""
    got = [result.x, *result.weights] if backward else [result[0]]
    errors = [
        np.linalg.norm(computed.astype("float64").numpy() - wanted)
        / max(np.linalg.norm(wanted), 1e-30)
        for computed, wanted in zip(got, expected(layer, arrays, backward), strict=True)
    ]
    return float(np.max(errors))


def measure(layer: Layer, kind: str, backward: bool, timed: bool) -> dict[str, Any]:
    arrays = operands(layer, kind)
    row: dict[str, Any] = {
        "subject": "backward" if backward else "forward", "type": kind, **layer._asdict(),
    }  # fmt: skip
    row["error"] = relative_error(layer, arrays, ours(layer, arrays, backward)(), backward)
    row["correct"] = row["error"] <= TOLERANCE[kind]
    if not timed:
        return row
    copies = [operands(layer, kind, copy) for copy in range(COPIES)]
    modes = [False, True] if kind == "float32" else [False]
    subjects = {"ours": functools.partial(ours, layer, backward=backward)}
    if torch_names() is not None:
        for tf32 in modes:
            subjects["torch tf32" if tf32 else "torch"] = functools.partial(
                theirs, layer, backward=backward, tf32=tf32
            )
    calls = {name: subject(arrays) for name, subject in subjects.items()}
    row["device"] = figures(time_in_turn(calls))
    row["call"] = figures(waited(calls))
    if layer.length <= GRAPH_STEPS:
        makers: dict[str, replays.Maker] = {}
        for name, subject in subjects.items():
            runs = [subject(each) for each in copies]
            if name == "ours":
                makers[name] = functools.partial(replays.Ours, runs)
            else:
                makers[name] = functools.partial(replays.Theirs, torch_names(), runs)
        row["graph"] = figures(replays.figures(makers))
    return row


def waited(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Microseconds of a call and of the wait for its result."""

    def add_wait(call: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            call()
            kw.synchronize()  # the device, whoever queued the work

        return run

    times = harness.alternate(
        {name: add_wait(call) for name, call in calls.items()}, calls=20, rounds=7
    )
    return {name: each["median"] for name, each in times.items()}


def figures(times: dict[str, Any]) -> dict[str, Any]:
    """Microseconds of each subject, and torch's time over ours."""
    made = {
        name: taken if isinstance(taken, dict) else round(taken, 2) for name, taken in times.items()
    }
    for name, taken in times.items():
        if name != "ours" and not isinstance(taken, dict) and not isinstance(times["ours"], dict):
            made[f"{name} / ours"] = round(taken / times["ours"], 3)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    default = harness.RESULTS / "recurrent.json"
    parser.add_argument("-o", "--output", type=pathlib.Path, default=default)
    parser.add_argument("--types", default="float32,bfloat16")
    parser.add_argument("--layers", default="", help="those whose names have this text")
    parser.add_argument("--forward", action="store_true", help="the forward pass alone")
    options = parser.parse_args()
    timed = not kw.current_device().is_simulated
    found = [each for each in (LAYERS if timed else SMALL) if options.layers in each.name]
    work = []
    for kind in options.types.split(","):
        for layer in found:
            work.append((layer, kind, False))
            trained = not timed or any(text in layer.name for text in BACKWARD)
            if trained and not options.forward:
                work.append((layer, kind, True))
    rows: list[dict[str, Any]] = []
    document: dict[str, Any] = {"subject": "recurrent", "machine": harness.machine()}
    for layer, kind, backward in work:
        rows.append(measure(layer, kind, backward, timed))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
        document |= {"rows": rows, "correct": all(row["correct"] for row in rows)}
        harness.save(options.output, document)  # a time limit loses none
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
