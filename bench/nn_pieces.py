"""SwiGLU, bias and GELU, rotary embedding, embedding, cross-entropy beside torch with a cold L2.

Each figure is also a share of what a copy of 1 GB reaches in the same run. Where only the simulated
device is there, shapes are small and nothing is timed: what is left is whether results are right.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

import harness
import kernwright as kw
from kernwright import nn

TOLERANCE = {"float32": 1e-5, "bfloat16": 1e-2}


class Piece(NamedTuple):
    """Ours and torch's of the same arrays; results that are right; bytes that pass the memory."""

    arrays: list[kw.Array]
    ours: Callable[..., Any]
    torch: Callable[..., Any]
    reference: Callable[..., np.ndarray]  # of the first result
    moved: int


def normal(shape: tuple[int, ...], dtype: str, seed: int) -> kw.Array:
    """Random normal numbers, as zeros would run faster; made of one block, repeated."""
    block = np.random.default_rng(seed).standard_normal(min(1 << 22, int(np.prod(shape))), "f4")
    return kw.asarray(np.resize(block, shape)).astype(dtype)


@functools.cache
def torch_names() -> Any:
    try:
        import torch
    except ImportError as error:
        print("no peer:", error, file=sys.stderr)
        return None
    return torch


def swiglu(dtype: str, rows: int, cols: int) -> Piece:
    torch = torch_names()
    gate, up = normal((rows, cols), dtype, 0), normal((rows, cols), dtype, 1)

    def reference(g: np.ndarray, u: np.ndarray) -> np.ndarray:
        return g / (1 + np.exp(-g)) * u

    return Piece(
        [gate, up],
        nn.swiglu,
        lambda g, u: torch.nn.functional.silu(g) * u,
        reference,
        3 * gate.nbytes,
    )


def bias_gelu(dtype: str, rows: int, cols: int) -> Piece:
    torch = torch_names()
    x, bias = normal((rows, cols), dtype, 0), normal((cols,), dtype, 1)

    def reference(x: np.ndarray, bias: np.ndarray) -> np.ndarray:
        s = x + bias
        return 0.5 * s * (1 + np.tanh(np.sqrt(2 / np.pi) * (s + 0.044715 * s**3)))

    return Piece(
        [x, bias],
        lambda x, b: nn.bias_gelu(x, b, "tanh"),
        lambda x, b: torch.nn.functional.gelu(x + b, approximate="tanh"),
        reference,
        2 * x.nbytes,
    )


def rope(dtype: str, tokens: int, heads: int) -> Piece:
    """Four sequences of q with `heads` heads of 128 and k with a quarter of them."""
    torch = torch_names()
    q = normal((4, tokens, heads, 128), dtype, 0)
    k = normal((4, tokens, max(1, heads // 4), 128), dtype, 1)
    cos, sin = nn.rope_tables(tokens, 128)

    def peer(q: Any, k: Any, cos: Any, sin: Any) -> Any:
        """As transformers has it: the tables hold both halves."""
        c = torch.cat([cos, cos], -1)[None, :, None].to(q.dtype)
        s = torch.cat([sin, sin], -1)[None, :, None].to(q.dtype)

        def half(x: Any) -> Any:
            return torch.cat([-x[..., 64:], x[..., :64]], -1)

        return q * c + half(q) * s, k * c + half(k) * s

    def reference(q: np.ndarray, _: Any, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
        c, s = cos[None, :, None], sin[None, :, None]
        a, b = q[..., :64], q[..., 64:]
        return np.concatenate([a * c - b * s, b * c + a * s], -1)

    return Piece([q, k, cos, sin], nn.rope, peer, reference, 2 * (q.nbytes + k.nbytes))


def embedding(dtype: str, count: int, cols: int) -> Piece:
    torch = torch_names()
    vocabulary = 128256 if count > 1000 else 300
    table = normal((vocabulary, cols), dtype, 0)
    ids = kw.asarray(np.random.default_rng(1).integers(0, vocabulary, count))
    return Piece(
        [ids, table],
        nn.embedding,
        lambda ids, table: torch.nn.functional.embedding(ids, table),
        lambda ids, table: table[ids.astype(np.int64)],
        2 * count * cols * table.itemsize,
    )


def embedding_backward(dtype: str, count: int, cols: int) -> Piece:
    torch = torch_names()
    vocabulary = 128256 if count > 1000 else 300
    dy = normal((count, cols), dtype, 0)
    ids = kw.asarray(np.random.default_rng(1).integers(0, vocabulary, count))

    def reference(dy: np.ndarray, ids: np.ndarray) -> np.ndarray:
        made = np.zeros((vocabulary, cols))
        np.add.at(made, ids.astype(np.int64), dy)
        return made

    return Piece(
        [dy, ids],
        lambda dy, ids: nn.embedding_backward(dy, ids, vocabulary),
        lambda dy, ids: torch.ops.aten.embedding_dense_backward(dy, ids, vocabulary, -1, False),
        reference,
        dy.nbytes + vocabulary * cols * dy.itemsize,
    )


def cross_entropy(dtype: str, rows: int, classes: int) -> Piece:
    torch = torch_names()
    logits = normal((rows, classes), dtype, 0)
    target = kw.asarray(np.random.default_rng(1).integers(0, classes, rows))

    def peer(x: Any, t: Any) -> Any:
        leaf = x.detach().requires_grad_()
        loss = torch.nn.functional.cross_entropy(leaf.float(), t)
        return torch.autograd.grad(loss, leaf)[0]

    def reference(x: np.ndarray, t: np.ndarray) -> np.ndarray:
        power = np.exp(x - x.max(-1, keepdims=True))
        power /= power.sum(-1, keepdims=True)
        power[np.arange(rows), t.astype(np.int64)] -= 1
        return power / rows

    return Piece(
        [logits, target],
        lambda x, t: nn.cross_entropy_grad(x, t)[1],
        peer,
        reference,
        2 * logits.nbytes,
    )


# Builders, their sizes on a GPU, and on the simulated device.
PIECES: dict[str, tuple[Callable[..., Piece], list[tuple[int, int]], tuple[int, int]]] = {
    "swiglu": (swiglu, [(8192, 14336), (2048, 8192)], (8, 96)),
    "bias_gelu": (bias_gelu, [(8192, 16384), (2048, 4096)], (8, 96)),
    "rope": (rope, [(4096, 32), (8192, 64)], (6, 4)),
    "embedding": (embedding, [(16384, 4096)], (50, 64)),
    "embedding_backward": (embedding_backward, [(16384, 4096)], (50, 64)),
    "cross_entropy": (cross_entropy, [(8192, 128256), (8192, 32000)], (4, 3001)),
}


def is_right(piece: Piece, dtype: str) -> bool:
    """The first of the results, in float64; only small ones are compared."""
    result = piece.ours(*piece.arrays)
    first = result[0] if isinstance(result, tuple) else result
    host = [np.asarray(a.numpy(), np.float64) for a in piece.arrays]
    with np.errstate(over="ignore"):
        expected = piece.reference(*host)
    off = np.linalg.norm(np.asarray(first.numpy(), np.float64) - expected)
    return bool(off <= TOLERANCE[dtype] * np.linalg.norm(expected))


def peers(piece: Piece) -> Iterator[tuple[str, Callable[[], Any]]]:
    torch = torch_names()
    if torch is None:
        return
    tensors = [torch.from_dlpack(a) for a in piece.arrays]
    yield "torch", lambda: piece.torch(*tensors)
    compiled = torch.compile(piece.torch, dynamic=False)
    yield "torch.compile", lambda: compiled(*tensors)


def milliseconds(run: Callable[[], Any], stream: kw.Stream) -> float:
    """The device's time with a cold L2, also of work that torch queues."""
    torch = torch_names()
    within: Any = nullcontext()
    if torch is not None:
        within = torch.cuda.stream(torch.cuda.ExternalStream(stream.handle))
    with within:
        return kw.time_kernel(run, stream=stream, max_seconds=0.3).median


def copy_bandwidth(stream: kw.Stream) -> float:
    """Bytes per second, read and written."""
    x, y = kw.zeros(1 << 27), kw.zeros(1 << 27)
    return 2 * x.nbytes / milliseconds(lambda: y.__setitem__(..., x), stream) * 1e3


def measure(name: str, size: tuple[int, int], dtype: str, copy: float) -> dict[str, Any]:
    build, _, small = PIECES[name]
    row: dict[str, Any] = {"piece": name, "size": size, "dtype": dtype}
    row["correct"] = is_right(build(dtype, *small), dtype)
    if not copy:
        return row
    piece, stream = build(dtype, *size), kw.Stream()
    for title, run in [("ours", lambda: piece.ours(*piece.arrays)), *peers(piece)]:
        try:
            taken = milliseconds(run, stream)
        except Exception as error:  # a peer that cannot run leaves the others their figures
            if title == "ours":
                raise
            row[title] = {"error": f"{type(error).__name__}: {error}"[:200]}
            continue
        row[title] = {
            "us": round(taken * 1e3, 2),
            "TB/s": round(piece.moved / taken / 1e9, 3),
            "of copy": round(piece.moved / taken * 1e3 / copy, 3),
        }
    return row


def main() -> None:
    options = harness.arguments(__doc__.splitlines()[0], "nn_pieces")
    simulated = kw.current_device().is_simulated
    copy = 0.0 if simulated else copy_bandwidth(kw.Stream())
    rows = []
    for name, (_, sizes, small) in PIECES.items():
        for size in [small] if simulated else sizes:
            rows += [measure(name, size, dtype, copy) for dtype in ("bfloat16", "float32")]
    harness.write(
        options.output,
        {
            "subject": "nn_pieces",
            "machine": harness.machine(),
            "copy TB/s": round(copy / 1e12, 3),
            "rows": rows,
            "correct": all(row["correct"] for row in rows),
        },
    )


if __name__ == "__main__":
    main()
