"""Attention and torch's scaled_dot_product_attention with each backend: forward, backward and
decoding.

Subjects take turns on one stream; decoding starts with a cold L2. Forward is in TFLOP/s (half of
the operations if causal), backward with five products to the forward pass's two, decoding in TB/s
of keys and values. `--kernel` names the kernel of the forward and backward pass. `--candidates`
measures all their tiles for Hopper, the other kernel and torch. The simulated device checks only
the results, with small shapes and no timing.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

import harness
import kernwright as kw
from kernwright import _core, nn

ROUNDS = 3
TOLERANCE = 1e-2  # for bfloat16, by the norm of the sampled rows
BACKENDS = ["FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION"]


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


FORWARD = [
    *(
        Shape(max(1, 16384 // s), 16, 16, s, s, 128, causal)
        for causal in (False, True)
        for s in (512, 1024, 2048, 4096, 8192, 16384)
    ),
    Shape(2, 32, 8, 4096, 4096, 128, True),
    Shape(1, 64, 8, 8192, 8192, 128, True),
    Shape(4, 32, 32, 4096, 4096, 64, True),
    Shape(2, 16, 16, 4096, 4096, 256, True),
    # Too few rows for all multiprocessors.
    Shape(1, 16, 16, 512, 512),
    Shape(1, 8, 8, 1024, 1024),
    Shape(1, 32, 8, 64, 16384),
    Shape(1, 8, 8, 128, 8192),
    Shape(1, 16, 16, 256, 4096),
]
BACKWARD = [
    *(
        Shape(max(1, 16384 // s), 16, 16, s, s, 128, causal)
        for causal in (False, True)
        for s in (512, 1024, 2048, 4096, 8192, 16384)
    ),
    Shape(2, 32, 8, 4096, 4096, 128, True),
    Shape(1, 64, 8, 8192, 8192, 128, True),
    Shape(4, 32, 32, 4096, 4096, 64, False),
    Shape(4, 32, 32, 4096, 4096, 64, True),
    Shape(4, 16, 16, 4096, 4096, 96, True),
]
DECODE = [
    Shape(1, 32, 8, 1, 4096),
    Shape(1, 32, 8, 1, 32768),
    Shape(8, 32, 8, 1, 8192),
    Shape(32, 32, 8, 1, 4096),
    Shape(32, 32, 32, 1, 2048),
    Shape(8, 32, 8, 4, 8192),
]
SMALL = [Shape(1, 4, 2, 70, 70, 64, True), Shape(2, 2, 2, 70, 70, 64, False)]
SMALL_DECODE = [Shape(2, 4, 2, 1, 150, 64)]


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


def operands(shape: Shape) -> tuple[kw.Array, kw.Array, kw.Array]:
    keys = (shape.batch, shape.kv_heads, shape.keys, shape.dim)
    query = normal(shape.batch, shape.heads, shape.queries, shape.dim, seed=1)
    return query, normal(*keys, seed=2), normal(*keys, seed=3)


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


def max_of(errors: list[float]) -> float:
    """NaN if one is."""
    return float(np.max(errors))


def error_of(shape: Shape, arrays: tuple[kw.Array, ...], result: kw.Array, bottom: bool) -> float:
    """||result - expected|| / ||expected|| of the first, a middle and the last row, in float64; the
    larger one of the first and of the last head."""
    rows = sorted({0, shape.queries // 2, shape.queries - 1})
    errors = []
    for batch, head in ((0, 0), (shape.batch - 1, shape.heads - 1)):
        got = result[batch, head].numpy().astype(np.float64)[rows]
        errors.append(distance(got, expected_rows(shape, arrays, batch, head, rows, bottom)))
    return max_of(errors)


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


def time_in_turn(subjects: dict[str, Callable[[], Any]], cold: bool) -> dict[str, Any]:
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
                    timing = kw.time_kernel(run, stream=stream, cold=cold, max_seconds=0.15)
                except Exception as error:  # the other subjects still get figures
                    if title.startswith("ours"):
                        raise
                    errors[title] = {"error": f"{type(error).__name__}: {error}"[:200]}
                    continue
                found.setdefault(title, []).append(timing.median * 1e3)
    return {title: statistics.median(times) for title, times in found.items()} | errors


def rates(times: dict[str, Any], rate: Callable[[float], dict[str, float]]) -> dict[str, Any]:
    return {
        title: taken if isinstance(taken, dict) else {"us": round(taken, 2), **rate(taken)}
        for title, taken in times.items()
    }


def measure_forward(shape: Shape, timed: bool) -> dict[str, Any]:
    arrays = operands(shape)
    grouped = shape.heads != shape.kv_heads

    def ours() -> kw.Array:
        return nn.attention(*arrays, is_causal=shape.causal, enable_gqa=grouped)

    row: dict[str, Any] = {"subject": "forward", **shape._asdict()}
    row["error"] = error_of(shape, arrays, ours(), False)
    row["correct"] = row["error"] <= TOLERANCE
    if timed:
        subjects = {"ours": ours, **dict(peers(shape, arrays, False))}
        row |= rates(
            time_in_turn(subjects, False),
            lambda us: {"TFLOP/s": round(shape.flops() / us / 1e6, 1)},
        )
    return row


def paged(cache: kw.Array, page: int) -> tuple[kw.Array, kw.Array]:
    """A cache cut into pages in random order, and its table."""
    batch, heads, keys, dim = cache.shape
    each = keys // page
    order = np.random.default_rng(0).permutation(batch * each).astype(np.int32)
    pages = kw.permute_dims(cache, (0, 2, 1, 3)).reshape((batch * each, page, heads, dim))
    place = np.empty_like(order)
    place[order] = np.arange(batch * each, dtype=np.int32)
    return kw.take(pages, kw.asarray(order), axis=0), kw.asarray(place.reshape(batch, each))


def variants(shape: Shape, arrays: tuple[kw.Array, ...]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Ours over pages and over caches of 8 bits, and with other numbers of splits."""
    query, key, value = arrays
    if shape.keys % 16 == 0:
        (key_pages, table), (value_pages, _) = paged(key, 16), paged(value, 16)
        yield (
            "ours, pages of 16",
            lambda: nn.decode_attention(query, key_pages, value_pages, page_table=table),
        )
    small = [x.astype("float8_e4m3fn") for x in (key, value)]
    yield "ours, float8", lambda: nn.decode_attention(query, *small)
    whole = [(x.astype("float32") * np.float32(30)).astype("int8") for x in (key, value)]
    yield "ours, int8", lambda: nn.decode_attention(query, *whole)
    for splits in (1, 2, 4, 8, 16, 32, 64):
        yield (
            f"ours, {splits} splits",
            functools.partial(nn.decode_attention, *arrays, splits=splits),
        )


def measure_decode(shape: Shape, timed: bool) -> dict[str, Any]:
    arrays = operands(shape)

    def ours() -> kw.Array:
        return nn.decode_attention(*arrays)

    row: dict[str, Any] = {"subject": "decode", **shape._asdict()}
    row["error"] = error_of(shape, arrays, ours(), True)
    more = dict(variants(shape, arrays))
    if "ours, pages of 16" in more:
        error = error_of(shape, arrays, more["ours, pages of 16"](), True)
        row["error"] = max_of([row["error"], error])
    row["correct"] = row["error"] <= TOLERANCE
    if timed:
        subjects = {"ours": ours, **more, **dict(peers(shape, arrays, True))}
        moved = {title: shape.cache_bytes(1) for title in ("ours, float8", "ours, int8")}
        times = time_in_turn(subjects, True)
        for title, taken in times.items():
            moved.setdefault(title, shape.cache_bytes())
            of = moved[title]
            row |= rates({title: taken}, lambda us, of=of: {"TB/s": round(of / us / 1e6, 3)})
    return row


def title_of(tile: tuple[int, int, int, bool]) -> str:
    keys, stages, groups, persistent = tile
    text = f"ours, {64 * groups} queries, {keys} keys, {stages} stages"
    return text if persistent else text + ", new blocks"


def measure_candidates(shape: Shape, timed: bool) -> dict[str, Any]:
    """All tiles of the Hopper kernel that fit in shared memory, the best first."""
    arrays = operands(shape)
    grouped = shape.heads != shape.kv_heads

    def by(kernel: str, tile: tuple[int, int, int, bool] | None = None) -> kw.Array:
        _core._force_attention(kernel, tile)
        try:
            return nn.attention(*arrays, is_causal=shape.causal, enable_gqa=grouped)
        finally:
            _core._force_attention("auto")

    row: dict[str, Any] = {"subject": "candidates", **shape._asdict(), "wrong": [], "left out": {}}
    runs: dict[str, Callable[[], Any]] = {"ours, rule": lambda: by("auto")}
    runs["ours, mma"] = lambda: by("mma")
    for tile in _core._attention_tiles():
        runs[title_of(tile)] = functools.partial(by, "hopper", tile)
    for title, run in list(runs.items()):
        try:
            right = error_of(shape, arrays, run(), False) <= TOLERANCE
        except kw.Error as error:  # no room for the tile, or no Hopper
            row["left out"][title] = str(error)[:120]
        else:
            if not right:
                row["wrong"].append(title)
        if title in row["left out"] or title in row["wrong"]:
            del runs[title]
    row["correct"] = not row["wrong"]
    if timed:
        taken = time_in_turn({**runs, **dict(peers(shape, arrays, False))}, False)
        found = rates(taken, lambda us: {"TFLOP/s": round(shape.flops() / us / 1e6, 1)})
        row |= dict(sorted(found.items(), key=lambda item: -item[1].get("TFLOP/s", 0)))
    return row


class Backward:
    """The operands of the backward pass, with the results of the forward pass."""

    def __init__(self, shape: Shape) -> None:
        self.shape, self.grouped = shape, shape.heads != shape.kv_heads
        self.arrays = operands(shape)
        self.grad = normal(shape.batch, shape.heads, shape.queries, shape.dim, seed=4)
        self.out, self.lse = nn.attention(
            *self.arrays, is_causal=shape.causal, enable_gqa=self.grouped, return_lse=True
        )

    def by(self, kernel: str, heads: int | None = None) -> Any:
        _core._force_attention_backward(kernel, heads)
        try:
            return nn.attention_backward(
                self.grad,
                *self.arrays,
                self.out,
                self.lse,
                is_causal=self.shape.causal,
                enable_gqa=self.grouped,
            )
        finally:
            _core._force_attention_backward("auto")

    def peers(self) -> Iterator[tuple[str, Any]]:
        """torch's autograd alone; it uses the backend of its forward pass."""
        torch = torch_names()
        if torch is None:
            return
        from torch.nn.attention import SDPBackend, sdpa_kernel

        attention = torch.nn.functional.scaled_dot_product_attention
        given = [torch.from_dlpack(x).detach().requires_grad_() for x in self.arrays]
        grad = torch.from_dlpack(self.grad)
        for name in BACKENDS:
            backend = getattr(SDPBackend, name, None)
            if backend is None:
                continue
            title = f"torch {name.split('_')[0].lower()}"
            try:
                with sdpa_kernel([backend]):
                    out = attention(*given, is_causal=self.shape.causal, enable_gqa=self.grouped)
            except Exception as error:  # the other subjects still get figures
                print(title, "cannot run:", str(error)[:200], file=sys.stderr)
                continue
            yield (
                title,
                functools.partial(torch.autograd.grad, out, given, grad, retain_graph=True),
            )

    def head(self, array: kw.Array, batch: int, head: int) -> np.ndarray:
        return array[batch, head].numpy().astype(np.float64)

    def changes(
        self,
        query: np.ndarray,
        grad: np.ndarray,
        lse: np.ndarray,
        delta: np.ndarray,
        key: np.ndarray,
        value: np.ndarray,
        rows: Any,
        columns: Any,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weights of some queries and keys of a head, and the gradients of their products."""
        scale = self.shape.dim**-0.5
        score = query[rows] @ key[columns].T * scale - lse[rows, None]
        if self.shape.causal:
            score[np.asarray(columns)[None] > np.asarray(rows)[:, None]] = -np.inf
        weight = np.exp(score)
        return weight, weight * (grad[rows] @ value[columns].T - delta[rows, None]) * scale

    def error_of(self, made: tuple[kw.Array, ...]) -> float:
        """The largest error of rows of each gradient, of the first and the last head, against
        float64 from the result and the logarithms of the forward pass."""
        errors = []
        shape = self.shape
        rows = sorted({0, shape.queries // 2, shape.queries - 1})
        columns = sorted({0, shape.keys // 2, shape.keys - 1})
        group = shape.heads // shape.kv_heads
        for batch, kv_head in ((0, 0), (shape.batch - 1, shape.kv_heads - 1)):
            key, value = (self.head(x, batch, kv_head) for x in self.arrays[1:])
            wanted_keys, wanted_values = np.zeros((2, len(columns), shape.dim))
            for head in range(kv_head * group, (kv_head + 1) * group):
                query, grad, out = (
                    self.head(x, batch, head) for x in (self.arrays[0], self.grad, self.out)
                )
                lse, delta = self.head(self.lse, batch, head), (grad * out).sum(-1)
                changes = functools.partial(self.changes, query, grad, lse, delta, key, value)
                weight, change = changes(np.arange(shape.queries), columns)
                wanted_keys += change.T @ query
                wanted_values += weight.T @ grad
                of_rows = changes(rows, np.arange(shape.keys))[1] @ key
                errors.append(distance(self.head(made[0], batch, head)[rows], of_rows))
            for array, wanted in zip(made[1:], (wanted_keys, wanted_values), strict=True):
                errors.append(distance(self.head(array, batch, kv_head)[columns], wanted))
        return max_of(errors)


def measure_backward(
    shape: Shape, timed: bool, kernel: str = "auto", candidates: bool = False
) -> dict[str, Any]:
    """With `candidates` also the other kernel and more orders of blocks, the best first."""
    of = Backward(shape)
    row: dict[str, Any] = {"subject": "backward", **shape._asdict(), "wrong": [], "left out": {}}
    runs: dict[str, Callable[[], Any]] = {"ours": lambda: of.by(kernel)}
    if candidates:
        runs["ours, mma"] = lambda: of.by("mma")
        for heads in (1, 2, 4, 8, 16, 1 << 20):
            runs[f"ours, {heads} heads at a time"] = functools.partial(of.by, "hopper", heads)
    for title, run in list(runs.items()):
        try:
            found = of.error_of(run())
        except kw.Error as error:  # no room for the tile, or no Hopper
            row["left out"][title] = str(error)[:120]
        else:
            if title == "ours":
                row["error"] = found
            if not found <= TOLERANCE:
                row["wrong"].append(title)
        if title in row["left out"] or title in row["wrong"]:
            del runs[title]
    row["correct"] = not row["wrong"] and "ours" in runs
    if timed:
        taken = time_in_turn({**runs, **dict(of.peers())}, False)
        found = rates(taken, lambda us: {"TFLOP/s": round(2.5 * shape.flops() / us / 1e6, 1)})
        row |= dict(sorted(found.items(), key=lambda item: -item[1].get("TFLOP/s", 0)))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    default = harness.RESULTS / "attention.json"
    parser.add_argument("-o", "--output", type=pathlib.Path, default=default)
    parser.add_argument("--kernel", choices=("auto", "mma", "hopper"), default="auto")
    parser.add_argument("--candidates", action="store_true", help="measure every tile")
    parser.add_argument("--forward", action="store_true", help="the forward pass alone")
    parser.add_argument("--backward", action="store_true", help="the backward pass alone")
    parser.add_argument("--queries", type=int, nargs="*", help="shapes of so many queries alone")
    options = parser.parse_args()
    timed = not kw.current_device().is_simulated
    forward = measure_candidates if options.candidates else measure_forward
    backward = functools.partial(
        measure_backward, kernel=options.kernel, candidates=options.candidates
    )
    shapes: list[tuple[Callable[[Shape, bool], dict[str, Any]], Shape]] = []
    if not options.backward:
        shapes += [(forward, shape) for shape in (FORWARD if timed else SMALL)]
    if not options.forward:
        shapes += [(backward, shape) for shape in (BACKWARD if timed else SMALL)]
    if not options.forward and not options.backward and not options.candidates:
        shapes += [(measure_decode, shape) for shape in (DECODE if timed else SMALL_DECODE)]
    if options.queries and timed:
        shapes = [each for each in shapes if each[1].queries in options.queries]
    rows: list[dict[str, Any]] = []
    document = {"subject": "attention", "machine": harness.machine(), "kernel": options.kernel}
    for measure, shape in shapes:
        _core._force_attention(options.kernel if measure is measure_forward else "auto")
        rows.append(measure(shape, timed))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
        document |= {"rows": rows, "correct": all(row["correct"] for row in rows)}
        harness.save(options.output, document)  # a time limit loses none
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
