"""Products of groups of rows (mixtures of experts), ours, torch's and DeepGEMM's, in one run.

Operands are random normal numbers; tokens choose their experts evenly or by Zipf's law. Figures are
the median of the device's times, TFLOP/s of the necessary operations, and the weights' bytes of
experts with rows divided by the time. Rows are saved as they finish; a peer that fails leaves its
message. The simulated device checks only the results, with small shapes and no timing.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import pathlib
import statistics
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import deep_gemm_peer
import numpy as np

import harness
import kernwright as kw
from kernwright import _core


class Layer(NamedTuple):
    """The matrices of a layer's experts, and the number of experts of a token."""

    title: str
    experts: int
    chosen: int
    n: int
    k: int


# Gate and up together, then down: of Mixtral 8x7B, DeepSeek-V2-Lite, Qwen3-30B-A3B.
LAYERS = [
    Layer("8 experts up", 8, 2, 28672, 4096),
    Layer("8 experts down", 8, 2, 4096, 14336),
    Layer("64 experts up", 64, 6, 2816, 2048),
    Layer("64 experts down", 64, 6, 2048, 1408),
    Layer("128 experts up", 128, 8, 1536, 2048),
    Layer("128 experts down", 128, 8, 2048, 768),
]
TOKENS = [16, 128, 1024, 4096, 16384]
TINY = [Layer("tiny", 8, 2, 96, 72), Layer("tiny", 16, 4, 40, 64)]
TOLERANCE = 1e-2


def torch_or_none() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def group_sizes(layer: Layer, tokens: int, skewed: bool) -> np.ndarray:
    """Rows of each expert: tokens draw experts without replacement, evenly or by 1 / rank."""
    rng = np.random.default_rng(tokens)
    chances = 1 / np.arange(1, layer.experts + 1) if skewed else np.ones(layer.experts)
    chances = rng.permutation(chances)
    # The largest exponential times over chances: a draw without replacement.
    times = rng.exponential(size=(tokens, layer.experts)) / chances
    chosen = np.argsort(times, axis=1)[:, : layer.chosen]
    return np.bincount(chosen.ravel(), minlength=layer.experts)


class Problem(NamedTuple):
    """Sorted rows, the experts' matrices, and the end of each expert's rows."""

    x: kw.Array
    weights: kw.Array
    ends: kw.Array
    sizes: np.ndarray

    @property
    def products(self) -> float:
        return 2.0 * self.x.shape[0] * self.weights.shape[1] * self.weights.shape[2]

    @property
    def weight_bytes(self) -> float:
        return 2.0 * np.count_nonzero(self.sizes) * self.weights.shape[1] * self.weights.shape[2]


def problem(layer: Layer, tokens: int, skewed: bool) -> Problem:
    sizes = group_sizes(layer, tokens, skewed)
    x = kw.random.normal((int(sizes.sum()), layer.k), seed=1).astype("bfloat16")
    weights = kw.empty((layer.experts, layer.n, layer.k), "bfloat16")
    for expert in range(layer.experts):
        made = kw.random.normal((layer.n, layer.k), seed=2 + expert)
        weights[expert] = made.astype("bfloat16")
    return Problem(x, weights, kw.asarray(np.cumsum(sizes).astype(np.int32)), sizes)


def relative_error(subject: Problem, result: kw.Array) -> float:
    """||out - reference|| / ||reference|| of the groups' first and last rows, in float64."""
    ends = np.cumsum(subject.sizes)
    wrong = right = 0.0
    for expert in np.unique(np.linspace(0, len(ends) - 1, 16).astype(int)):
        if subject.sizes[expert] == 0:
            continue
        edges = np.unique([ends[expert] - subject.sizes[expert], ends[expert] - 1])
        rows = kw.asarray(edges)
        left = np.asarray(kw.take(subject.x, rows, axis=0).numpy(), np.float64)
        columns = slice(0, 256)
        some = np.asarray(subject.weights[int(expert), columns].numpy(), np.float64)
        expected = left @ some.T
        got = np.asarray(kw.take(result, rows, axis=0).numpy(), np.float64)[:, columns]
        wrong += float(((got - expected) ** 2).sum())
        right += float((expected**2).sum())
    return (wrong / right) ** 0.5 if right else 0.0


# -------------------------------------------------------------------------------------- timings


def ours(subject: Problem, **more: Any) -> Callable[[], Any]:
    return lambda: _core._grouped_product(subject.x, subject.weights, subject.ends, "ends", **more)


def gated(subject: Problem) -> Callable[[], Any]:
    return lambda: kw.nn.grouped_linear(subject.x, subject.weights, subject.ends, gate="silu")


def torch_runs(torch: Any, subject: Problem) -> dict[str, Callable[[], Any]]:
    x, weights = torch.from_dlpack(subject.x), torch.from_dlpack(subject.weights)
    ends = torch.from_dlpack(subject.ends)
    runs: dict[str, Callable[[], Any]] = {}
    if hasattr(torch, "_grouped_mm"):
        runs["torch._grouped_mm"] = lambda: torch._grouped_mm(x, weights.mT, offs=ends)
    edges = [0, *np.cumsum(subject.sizes).tolist()]

    def loop() -> list[Any]:
        """The ends are read on the host, so a graph cannot hold this."""
        return [
            torch.matmul(x[begin:end], weights[expert].T)
            for expert, (begin, end) in enumerate(itertools.pairwise(edges))
            if end > begin
        ]

    runs["torch, expert by expert"] = loop
    return runs


def deep_gemm_runs(torch: Any, subject: Problem) -> dict[str, Callable[[], Any]]:
    if not importlib.util.find_spec("deep_gemm"):
        return {}
    x, weights = torch.from_dlpack(subject.x), torch.from_dlpack(subject.weights)
    return {"DeepGEMM": deep_gemm_peer.bfloat16_groups(torch, x, weights, subject.sizes.tolist())}


def milliseconds(run: Callable[[], Any], stream: kw.Stream, seconds: float, torch: Any) -> float:
    external = torch and torch.cuda.stream(torch.cuda.ExternalStream(stream.handle))
    with external or nullcontext():
        return kw.time_kernel(run, stream=stream, cold=True, max_seconds=seconds).median


def alternate(
    subject: Problem, runs: dict[str, Callable[[], Any]], options: argparse.Namespace, torch: Any
) -> dict[str, dict[str, Any]]:
    """Figures of each subject, from rounds where all take turns; its message if it fails."""
    stream = kw.Stream()
    samples: dict[str, list[float]] = {title: [] for title in runs}
    failures: dict[str, str] = {}
    for _ in range(options.rounds):
        for title, run in runs.items():
            if title in failures:
                continue
            try:
                samples[title].append(milliseconds(run, stream, options.seconds, torch))
            except Exception as error:  # the other subjects still get figures
                failures[title] = f"{type(error).__name__}: {error}"[:300]
    figures: dict[str, dict[str, Any]] = {}
    for title, taken in samples.items():
        if title in failures:
            figures[title] = {"error": failures[title]}
            continue
        time = statistics.median(taken)
        figures[title] = {
            "us": round(time * 1e3, 2),
            "TFLOP/s": round(subject.products / time / 1e9, 1),
            "TB/s of weights": round(subject.weight_bytes / time / 1e9, 3),
        }
    return figures


def torch_error(torch: Any, subject: Problem, result: kw.Array) -> float | None:
    """The error of all elements, against torch's products."""
    runs = torch_runs(torch, subject)
    try:
        theirs = torch.cat(runs["torch, expert by expert"]()).float()
    except Exception as error:
        print(f"torch: {error}", file=sys.stderr)
        return None
    measured = torch.from_dlpack(result).float()
    return float((measured - theirs).norm() / theirs.norm())


def candidates(subject: Problem) -> dict[str, Callable[[], Any]]:
    """Measures every tile."""
    runs = {"rule": ours(subject)}
    for tile in _core._gemm_tiles():
        rows, columns, stages, groups, ping_pong, cluster = tile
        text = f"{rows}x{columns} {stages} stages {groups} groups"
        title = text + (" in turn" if ping_pong else "") + (f" cluster {cluster}" * (cluster > 1))
        runs[title] = ours(subject, tile=tile)
    return runs


def measure(
    layer: Layer, tokens: int, skewed: bool, options: argparse.Namespace, torch: Any
) -> dict[str, Any]:
    subject = problem(layer, tokens, skewed)
    row: dict[str, Any] = {
        "layer": layer.title,
        "experts": layer.experts,
        "tokens": tokens,
        "rows": int(subject.sizes.sum()),
        "n": layer.n,
        "k": layer.k,
        "routing": "skewed" if skewed else "even",
        "largest group": int(subject.sizes.max()),
        "choice": _core._grouped_choice(int(subject.sizes.sum()), layer.n, layer.k, layer.experts),
    }
    result = ours(subject)()
    row["error"] = relative_error(subject, result)
    row["correct"] = row["error"] < TOLERANCE
    if torch:
        row["error of all"] = torch_error(torch, subject, result)
        row["correct"] &= row["error of all"] is None or row["error of all"] < TOLERANCE
    if kw.current_device().is_simulated:
        return row
    runs = {"ours": ours(subject), "ours with SwiGLU": gated(subject)}
    if options.candidates:
        runs = candidates(subject)
    elif torch:
        runs |= torch_runs(torch, subject) | deep_gemm_runs(torch, subject)
    row["figures"] = alternate(subject, runs, options, torch)
    best = [
        figure["us"]
        for title, figure in row["figures"].items()
        if title == "torch._grouped_mm" and "us" in figure
    ]
    if best and "us" in row["figures"].get("ours", {}):
        row["of torch._grouped_mm"] = round(best[0] / row["figures"]["ours"]["us"], 3)
    return row


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "-o", "--output", type=pathlib.Path, default=harness.RESULTS / "grouped.json"
    )
    parser.add_argument("--candidates", action="store_true", help="measure every tile")
    parser.add_argument("--layers", nargs="+", metavar="WORD", help="those whose titles have it")
    parser.add_argument("--tokens", type=int, nargs="+", default=None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1, help="of a measurement of a round")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    torch = torch_or_none()
    simulated = kw.current_device().is_simulated
    layers = TINY if simulated else LAYERS
    if options.layers:
        layers = [layer for layer in layers if any(word in layer.title for word in options.layers)]
    tokens = options.tokens or ([5, 60] if simulated else TOKENS)
    document: dict[str, Any] = {"subject": "grouped", "machine": harness.machine(), "rows": []}
    for layer in layers:
        for count in tokens:
            for skewed in (False, True):
                row = measure(layer, count, skewed, options, torch)
                print(row, file=sys.stderr, flush=True)
                document["rows"].append(row)
                document["correct"] = all(each["correct"] for each in document["rows"])
                harness.save(options.output, document)
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
