"""Shapes, operands, errors, peers and timings of the benchmarks of attention."""

from __future__ import annotations

import functools
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import replays

import kernwright as kw

ROUNDS = 3
TOLERANCE = 1e-2  # for bfloat16, by the norm of the sampled rows
BACKENDS = ["FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION"]

Subjects = dict[str, Callable[[], Any]]
Times = dict[str, Any]  # microseconds, or an error


class Shape(NamedTuple):
    """Queries and keys of one call; `causal` not for decoding."""

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    dim: int = 128
    causal: bool = False

    def flops(self) -> float:
        whole = 4.0 * self.batch * self.heads * self.queries * self.keys * self.dim
        return whole / 2 if self.causal else whole

    def cache_bytes(self, element: int = 2) -> int:
        return 2 * self.batch * self.kv_heads * self.keys * self.dim * element


@functools.cache
def torch_names() -> Any:
    try:
        import torch
    except ImportError as error:
        print("no peer:", error, file=sys.stderr)
        return None
    return torch


def normal(*shape: int, seed: int = 0) -> kw.Array:
    """Random normal numbers: kernels run faster on zeros."""
    return kw.random.normal(shape=shape, dtype="float32", seed=seed).astype("bfloat16")


def operands(shape: Shape, copy: int = 0) -> tuple[kw.Array, kw.Array, kw.Array]:
    keys = (shape.batch, shape.kv_heads, shape.keys, shape.dim)
    query = normal(shape.batch, shape.heads, shape.queries, shape.dim, seed=3 * copy + 1)
    return query, normal(*keys, seed=3 * copy + 2), normal(*keys, seed=3 * copy + 3)


def expected_rows(
    shape: Shape, arrays: tuple[kw.Array, ...], batch: int, head: int, rows: list[int], bottom: bool
) -> np.ndarray:
    """Expected results of some rows of one head, in float64."""
    kv_head = head * shape.kv_heads // shape.heads
    query = arrays[0][batch, head].numpy().astype(np.float64)[rows]
    key, value = (x[batch, kv_head].numpy().astype(np.float64) for x in arrays[1:])
    score = query @ key.T / np.sqrt(shape.dim)
    if shape.causal or bottom:
        position = np.asarray(rows) + (shape.keys - shape.queries if bottom else 0)
        score[np.arange(shape.keys) > position[:, None]] = -np.inf
    weight = np.exp(score - score.max(-1, keepdims=True))
    return weight / weight.sum(-1, keepdims=True) @ value


def distance(got: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))


def largest_error(errors: list[float]) -> float:
    """NaN if one is."""
    return float(np.max(errors))


def relative_error(
    shape: Shape, arrays: tuple[kw.Array, ...], result: kw.Array, bottom: bool
) -> float:
    """||result - expected|| / ||expected|| of the first, a middle and the last row, in float64; the
    larger one of the first and of the last head."""
    rows = sorted({0, shape.queries // 2, shape.queries - 1})
    errors = []
    for batch, head in ((0, 0), (shape.batch - 1, shape.heads - 1)):
        got = result[batch, head].numpy().astype(np.float64)[rows]
        errors.append(distance(got, expected_rows(shape, arrays, batch, head, rows, bottom)))
    return largest_error(errors)


def peers(shape: Shape, arrays: tuple[kw.Array, ...], decoding: bool) -> Iterator[tuple[str, Any]]:
    """torch with each backend; for decoding also with the heads of a group as queries."""
    torch = torch_names()
    if torch is None:
        return
    from torch.nn.attention import SDPBackend, sdpa_kernel

    attention = torch.nn.functional.scaled_dot_product_attention
    query, key, value = (torch.from_dlpack(x) for x in arrays)
    grouped = shape.heads != shape.kv_heads

    def call(backend: Any, query: Any, causal: bool, gqa: bool) -> Callable[[], Any]:
        def run() -> Any:
            with sdpa_kernel([backend]):
                return attention(query, key, value, is_causal=causal, enable_gqa=gqa)

        return run

    for name in BACKENDS:
        backend = getattr(SDPBackend, name, None)
        if backend is None:
            continue
        title = f"torch {name.split('_')[0].lower()}"
        yield title, call(backend, query, shape.causal, grouped)
        if decoding and grouped and shape.queries == 1:
            folded = query.reshape(shape.batch, shape.kv_heads, -1, shape.dim)
            yield f"{title}, folded", call(backend, folded, False, False)


def time_in_turn(subjects: Subjects) -> dict[str, Any]:
    """Microseconds of each subject: the median of its rounds, or the error if it fails."""
    torch, stream = torch_names(), kw.Stream()
    within: Any = nullcontext()
    if torch is not None:
        within = torch.cuda.stream(torch.cuda.ExternalStream(stream.handle))
    found: dict[str, list[float]] = {}
    errors: dict[str, Any] = {}
    with within:
        for _ in range(ROUNDS):
            for title, run in subjects.items():
                if title in errors:
                    continue
                try:
                    timing = kw.time_kernel(run, stream=stream, cold=True, max_seconds=0.15)
                except Exception as error:  # the other subjects still get figures
                    if title.startswith("ours"):
                        raise
                    errors[title] = {"error": f"{type(error).__name__}: {error}"[:200]}
                    continue
                found.setdefault(title, []).append(timing.median * 1e3)
    return {title: statistics.median(times) for title, times in found.items()} | errors


def replayed(shape: Shape, make_subjects: Callable[[tuple[kw.Array, ...]], Subjects]) -> Times:
    """The same of graphs over copies of the operands."""
    count = replays.copy_count(shape.cache_bytes())
    copies = [make_subjects(operands(shape, copy)) for copy in range(count)]

    def maker(title: str) -> replays.Maker:
        launches = [subjects[title] for subjects in copies]
        if title.startswith("torch"):
            return lambda: replays.Theirs(torch_names(), launches)
        return lambda: replays.Ours(launches)

    return replays.figures({title: maker(title) for title in copies[0]})


def rates(times: dict[str, Any], rate: Callable[[float], dict[str, float]]) -> dict[str, Any]:
    return {
        title: taken if isinstance(taken, dict) else {"us": round(taken, 2), **rate(taken)}
        for title, taken in times.items()
    }
