"""Softmax and norms, forward and backward, beside torch, eager and compiled, with a cold L2.

Each figure is also a share of what a copy of 1 GB reaches in the same run. Where only the simulated
device is there, shapes are small and nothing is timed: what is left is whether results are right.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

import harness
import kernwright as kw
from kernwright import nn

SHAPES = {
    "softmax": [(8192, 8192), (32768, 4096), (4096, 65536), (1, 128256)],
    "softmax_backward": [(8192, 8192), (32768, 4096)],
    "rms_norm": [(8192, 8192), (16384, 4096), (131072, 128)],
    "layer_norm": [(8192, 8192), (16384, 4096)],
    "rms_norm_backward": [(8192, 8192), (16384, 4096), (4096, 16384)],
    "layer_norm_backward": [(8192, 8192), (16384, 4096)],
}
DTYPES = ["float32", "bfloat16"]
TOLERANCE = {"float32": 1e-5, "bfloat16": 1e-2}
CHECKED_ROWS = 32


class Operation(NamedTuple):
    """Ours, torch's and NumPy's of (dy, x, weight, bias), and how many arrays pass the memory."""

    ours: Callable[..., Any]
    torch: Callable[..., Any]
    reference: Callable[..., np.ndarray]
    passes: int


def reference_softmax(_: Any, x: np.ndarray, *__: Any) -> np.ndarray:
    power = np.exp(x - x.max(-1, keepdims=True))
    return power / power.sum(-1, keepdims=True)


def reference_softmax_backward(dy: np.ndarray, x: np.ndarray, *_: Any) -> np.ndarray:
    """x is what softmax returned."""
    return x * (dy - (dy * x).sum(-1, keepdims=True))


def normal(x: np.ndarray, centred: bool) -> tuple[np.ndarray, np.ndarray]:
    if centred:
        x = x - x.mean(-1, keepdims=True)
    divisor = np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    return x / divisor, divisor


def reference_norm(centred: bool) -> Callable[..., np.ndarray]:
    def run(_: Any, x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
        return normal(x, centred)[0] * weight + (bias if centred else 0)

    return run


def reference_norm_backward(centred: bool) -> Callable[..., np.ndarray]:
    def run(dy: np.ndarray, x: np.ndarray, weight: np.ndarray, _: Any) -> np.ndarray:
        hat, divisor = normal(x, centred)
        g = dy * weight
        mean = g.mean(-1, keepdims=True) if centred else 0
        return (g - mean - hat * (g * hat).mean(-1, keepdims=True)) / divisor

    return run


def torch_functions() -> dict[str, Callable[..., Any]]:
    """By name; a gradient is that of a forward pass which is not part of the time."""
    try:
        import torch
    except ImportError as error:
        print("no peer:", error, file=sys.stderr)
        return {}
    functional = torch.nn.functional

    def rms(_: Any, x: Any, weight: Any, __: Any) -> Any:
        return functional.rms_norm(x, x.shape[-1:], weight, 1e-5)

    def layer(_: Any, x: Any, weight: Any, bias: Any) -> Any:
        return functional.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)

    def softmax_backward(dy: Any, x: Any, *_: Any) -> Any:
        return torch._softmax_backward_data(dy, x, -1, x.dtype)

    return {
        "softmax": lambda dy, x, w, b: torch.softmax(x, -1),
        "softmax_backward": softmax_backward,
        "rms_norm": rms,
        "layer_norm": layer,
        "rms_norm_backward": rms,
        "layer_norm_backward": layer,
    }


def operations() -> dict[str, Operation]:
    torch = torch_functions()
    missing: Callable[..., Any] = lambda *_: None  # noqa: E731
    rows = {
        "softmax": (lambda dy, x, w, b: nn.softmax(x), reference_softmax, 2),
        "softmax_backward": (
            lambda dy, x, w, b: nn.softmax_backward(dy, x), reference_softmax_backward, 3),
        "rms_norm": (lambda dy, x, w, b: nn.rms_norm(x, w, 1e-5), reference_norm(False), 2),
        "layer_norm": (lambda dy, x, w, b: nn.layer_norm(x, w, b), reference_norm(True), 2),
        "rms_norm_backward": (
            lambda dy, x, w, b: nn.rms_norm_backward(dy, x, w, 1e-5)[0],
            reference_norm_backward(False), 3),
        "layer_norm_backward": (
            lambda dy, x, w, b: nn.layer_norm_backward(dy, x, w)[0],
            reference_norm_backward(True), 3),
    }  # fmt: skip
    return {
        name: Operation(ours, torch.get(name, missing), reference, passes)
        for name, (ours, reference, passes) in rows.items()
    }


def inputs(name: str, shape: tuple[int, int], dtype: str) -> list[kw.Array]:
    """dy, x, weight and bias: random normal numbers, as zeros would run faster."""
    random = np.random.default_rng(0)
    block = random.standard_normal((min(shape[0], 512), shape[1]), np.float32)
    values = np.resize(block, shape)
    dy, x = kw.asarray(values).astype(dtype), kw.asarray(np.roll(values, 1, 0)).astype(dtype)
    vectors = [kw.asarray(random.standard_normal(shape[1], np.float32)) for _ in range(2)]
    if name == "softmax_backward":
        x = nn.softmax(x)
    return [dy, x, *(vector.astype(dtype) for vector in vectors)]


def is_right(operation: Operation, arrays: list[kw.Array], dtype: str) -> bool:
    """The first and the last rows of the whole result, in float64."""
    some = [slice(0, CHECKED_ROWS), slice(-CHECKED_ROWS, None)]
    result = operation.ours(*arrays)
    for part in some:
        host = [np.asarray(a[part].numpy(), np.float64) for a in arrays[:2]]
        host += [np.asarray(a.numpy(), np.float64) for a in arrays[2:]]
        expected = operation.reference(*host)
        off = np.linalg.norm(np.asarray(result[part].numpy(), np.float64) - expected)
        if not off <= TOLERANCE[dtype] * np.linalg.norm(expected):
            return False
    return True


def peers(name: str, operation: Operation, arrays: list[kw.Array]) -> Iterator[tuple[str, Any]]:
    """torch's calls on the same memory."""
    try:
        import torch
    except ImportError:
        return
    tensors = [torch.from_dlpack(a) for a in arrays]
    for title, function in (
        ("torch", operation.torch),
        ("torch.compile", torch.compile(operation.torch, dynamic=False)),
    ):
        if name.endswith("norm_backward"):
            leaves = [t.detach().clone().requires_grad_() for t in tensors[1:]]
            y = function(tensors[0], *leaves)
            used = leaves if name.startswith("layer") else leaves[:2]
            yield (
                title,
                lambda y=y, used=used: torch.autograd.grad(y, used, tensors[0], retain_graph=True),
            )
        else:
            yield title, lambda function=function: function(*tensors)


def milliseconds(run: Callable[[], Any], stream: kw.Stream) -> float:
    """The device's time with a cold L2, also of work that torch queues."""
    try:
        import torch

        within: Any = torch.cuda.stream(torch.cuda.ExternalStream(stream.handle))
    except ImportError:
        within = nullcontext()
    with within:
        return kw.time_kernel(run, stream=stream, max_seconds=0.3).median


def copy_bandwidth(stream: kw.Stream) -> float:
    """Bytes per second, read and written."""
    x, y = kw.zeros(1 << 27), kw.zeros(1 << 27)
    return 2 * x.nbytes / milliseconds(lambda: y.__setitem__(..., x), stream) * 1e3


def measure(name: str, operation: Operation, shape: Any, dtype: str, copy: float) -> dict[str, Any]:
    arrays = inputs(name, shape, dtype)
    row: dict[str, Any] = {"operation": name, "shape": shape, "dtype": dtype}
    row["correct"] = is_right(operation, arrays, dtype)
    if not copy:
        return row
    stream = kw.Stream()
    moved = operation.passes * arrays[1].nbytes
    runs = [("ours", lambda: operation.ours(*arrays)), *peers(name, operation, arrays)]
    for title, run in runs:
        taken = milliseconds(run, stream)
        row[title] = {
            "us": round(taken * 1e3, 2),
            "TB/s": round(moved / taken / 1e9, 3),
            "of copy": round(moved / taken * 1e3 / copy, 3),
        }
    return row


def main() -> None:
    options = harness.arguments(__doc__.splitlines()[0], "norms")
    simulated = kw.current_device().is_simulated
    copy = 0.0 if simulated else copy_bandwidth(kw.Stream())
    rows = []
    for name, operation in operations().items():
        for shape in SHAPES[name]:
            small = (min(shape[0], 64), min(shape[1], 1024)) if simulated else shape
            rows += [measure(name, operation, small, dtype, copy) for dtype in DTYPES]
    harness.write(
        options.output,
        {
            "subject": "norms",
            "machine": harness.machine(),
            "copy TB/s": round(copy / 1e12, 3),
            "rows": rows,
            "correct": all(row["correct"] for row in rows),
        },
    )


if __name__ == "__main__":
    main()
