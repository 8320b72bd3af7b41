"""Matrix products and torch's (cuBLAS): TFLOP/s in one alternating run, with a cold L2.

Operands are random normal numbers, because products run faster on zeros. They are 16-bit floats, or
with `--types` of other types with transposed weights (n, k). Products of less than 50 us are
measured by graphs of launches over rotating operands (replays.py), others by single launches after
a flush of the L2. With `--warm` there are single launches alone, and operands stay in L2 where they
fit. `--candidates` instead measures all tiles on each shape, and the rule's choice. A peer that
fails is named. Rows are saved as they finish. The simulated device checks only the results, with
small shapes and no timing.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import gemm_types
import numpy as np
import replays

import harness
import kernwright as kw
from kernwright import _core

# Rows, columns, inner dimension. With "nt" each column of the second operand is contiguous, as in
# the weights of layers. Layers: query-key-value, output, gate and up, down; of language models with
# 8 and 70 billion weights.
SQUARES = [(n, n, n) for n in (1024, 2048, 4096, 8192, 3072, 5120, 2050, 4000, 4095, 4097, 4104)]
LAYERS = [
    *((rows, n, k) for rows in (128, 512, 4096) for n, k in
      ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336))),
    *((4096, n, k) for n, k in ((10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672))),
    (4096, 7168, 16384),
]  # fmt: skip
TINY = [(128, 192, 160), (200, 136, 96)]
SAMPLED = 64
SHORT = 0.05  # ms
TOLERANCE = 5e-3  # relative, for results of 8 bits
PEERS = ("torch", "deep_gemm")
Runs = dict[str, Callable[[], Any]]
Times = dict[str, float]


def torch_or_none() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def operands(
    shape: tuple[int, int, int], layout: str, dtype: str, seed: int = 1
) -> tuple[kw.Array, kw.Array]:
    """a of (m, k) and b of (k, n); with layout "nt", b is a view of (n, k)."""
    m, n, k = shape
    a = kw.random.normal((m, k), seed=seed).astype(dtype)
    b = kw.random.normal((n, k) if layout == "nt" else (k, n), seed=1000 + seed).astype(dtype)
    return a, b.T if layout == "nt" else b


def relative_error(a: kw.Array, b: kw.Array, result: kw.Array) -> float:
    """||out - reference|| / ||reference|| of sampled rows and columns, in float64."""
    random = np.random.default_rng(3)

    def some(extent: int) -> np.ndarray:
        edges = [0, extent - 1]
        return np.unique(np.concatenate([random.integers(0, extent, SAMPLED), edges]))

    rows, columns = some(a.shape[0]), some(b.shape[1])
    left = np.asarray(kw.take(a, kw.asarray(rows), axis=0).numpy(), np.float64)
    right = np.asarray(kw.take(b, kw.asarray(columns), axis=1).numpy(), np.float64)
    part = kw.take(kw.take(result, kw.asarray(rows), axis=0), kw.asarray(columns), axis=1)
    expected = left @ right
    off = np.linalg.norm(np.asarray(part.numpy(), np.float64) - expected)
    return float(off / np.linalg.norm(expected))


def full_error(torch: Any, a: kw.Array, b: kw.Array, result: kw.Array) -> float:
    """The same error over all elements, against torch's result."""
    ours = torch.from_dlpack(result).float()
    theirs = torch.matmul(torch.from_dlpack(a), torch.from_dlpack(b)).float()
    return float((ours - theirs).norm() / theirs.norm())


def milliseconds(
    run: Callable[[], Any], stream: kw.Stream, options: argparse.Namespace, torch: Any
) -> float:
    """The device's time."""
    external = torch and torch.cuda.stream(torch.cuda.ExternalStream(stream.handle))
    with external or nullcontext():
        timing = kw.time_kernel(
            run, stream=stream, cold=not options.warm, max_seconds=options.seconds
        )
    return timing.median


def alternate(runs: Runs, options: argparse.Namespace, torch: Any) -> dict[str, float]:
    """Median milliseconds of rounds; each subject runs once in a round."""
    stream = kw.Stream()
    samples: dict[str, list[float]] = {title: [] for title in runs}
    for _ in range(options.rounds):
        for title, run in runs.items():
            samples[title].append(milliseconds(run, stream, options, torch))
    return {title: statistics.median(taken) for title, taken in samples.items()}


def replayed(make_runs: Callable[[int], Runs], titles: list[str], nbytes: int, torch: Any) -> Times:
    """Milliseconds of short products, by graphs over copies of operands of `nbytes`.
    make_runs(seed) gives the calls of all subjects for a copy."""
    copies = [make_runs(seed) for seed in range(1, 1 + replays.copy_count(nbytes))]

    def maker(title: str) -> replays.Replay:
        launches = [runs[title] for runs in copies]
        return replays.Theirs(torch, launches) if title in PEERS else replays.Ours(launches)

    taken = replays.in_turn({title: maker(title) for title in titles})
    return {title: us * 1e-3 for title, us in taken.items()}


def cold_times(
    runs: Runs,
    make_runs: Callable[[int], Runs],
    nbytes: int,
    options: argparse.Namespace,
    torch: Any,
) -> tuple[str, Times]:
    """How the subjects were measured, and the milliseconds of each."""
    taken = alternate(runs, options, torch)
    if options.warm or min(taken.values()) > SHORT:
        return "single launches", taken
    return "replays", replayed(make_runs, list(runs), nbytes, torch)


def rate(shape: tuple[int, int, int], taken: float) -> float:
    """TFLOP/s."""
    return round(2 * shape[0] * shape[1] * shape[2] / taken / 1e9, 1)


def rule_choice(shape: tuple[int, int, int], **kind: Any) -> str:
    """What the rule takes on this device."""
    device_facts = kw.current_device().attributes
    # kHz, bits, twice in a period
    bandwidth = (
        device_facts["memory_clock_rate"] * device_facts["global_memory_bus_width"] // 4_000_000
    )
    return _core._gemm_choice(
        *shape, multiprocessors=device_facts["multiprocessor_count"], bandwidth=bandwidth, **kind
    )


def torch_run(torch: Any, a: kw.Array, b: kw.Array) -> Callable[[], Any]:
    left, right = torch.from_dlpack(a), torch.from_dlpack(b)
    return lambda: torch.matmul(left, right)


def compared_runs(a: kw.Array, b: kw.Array, options: argparse.Namespace, torch: Any) -> Runs:
    runs: Runs = {"ours": lambda: _core._gemm(a, b, kernel=options.kernel)}
    if torch:
        runs["torch"] = torch_run(torch, a, b)
    return runs


def measure(
    shape: tuple[int, int, int], layout: str, options: argparse.Namespace, torch: Any
) -> dict[str, Any]:
    a, b = operands(shape, layout, options.dtype)
    row: dict[str, Any] = {"shape": shape, "layout": layout, "dtype": options.dtype}
    result = _core._gemm(a, b, kernel=options.kernel)
    row["error"] = relative_error(a, b, result)
    row["correct"] = row["error"] < TOLERANCE
    row["rule"] = options.kernel
    if options.kernel == "auto":
        row["rule"] = rule_choice(shape, b_turned=layout == "nt")
    if torch:
        row["error of all"] = full_error(torch, a, b, result)
        row["correct"] &= row["error of all"] < 2 * TOLERANCE
    if kw.current_device().is_simulated:
        return row

    def make_runs(seed: int) -> Runs:
        return compared_runs(*operands(shape, layout, options.dtype, seed), options, torch)

    runs = compared_runs(a, b, options, torch)
    row["by"], times = cold_times(runs, make_runs, a.nbytes + b.nbytes, options, torch)
    for title, taken in times.items():
        row[title] = {"us": round(taken * 1e3, 2), "TFLOP/s": rate(shape, taken)}
    if torch:
        row["of torch"] = round(row["ours"]["TFLOP/s"] / row["torch"]["TFLOP/s"], 3)
    return row


def make_title(tile: tuple[Any, ...]) -> str:
    if len(tile) == 3:
        return f"{tile[0]}x{tile[1]} {tile[2]} stages"
    rows, columns, stages, groups, ping_pong, cluster, *split_k = tile
    text = f"{rows}x{columns} {stages} stages {groups} groups"
    if split_k:
        return f"{text} split-K over {cluster} blocks"
    return text + (" in turn" if ping_pong else "") + (f" cluster {cluster}" if cluster > 1 else "")


def candidates(
    shape: tuple[int, int, int], layout: str, options: argparse.Namespace, torch: Any
) -> dict[str, Any]:
    """All tiles, without splits and with the rule's number of splits, the best first."""
    a, b = operands(shape, layout, options.dtype)
    row: dict[str, Any] = {"shape": shape, "layout": layout, "dtype": options.dtype}
    by_mma = options.kernel == "mma"
    row["rule"] = options.kernel
    if not by_mma:
        row["rule"] = rule_choice(shape, b_turned=layout == "nt")
    runs: Runs = {"rule": lambda: _core._gemm(a, b, kernel=options.kernel)}
    if torch:
        runs["torch"] = torch_run(torch, a, b)
    wrong = []
    all_tiles = [*_core._gemm_tiles(), *_core._gemm_tiles(split_k=True)]
    for tile in _core._mma_tiles() if by_mma else all_tiles:
        title = make_title(tile)
        choice = {"mma_tile": tile} if by_mma else {"tile": tile}
        try:
            error = relative_error(a, b, _core._gemm(a, b, splits=1, **choice))
        except kw.Error as failure:
            print(f"{title}: {failure}", file=sys.stderr)
            wrong.append(title)
            continue
        if error < TOLERANCE:
            runs[title] = lambda choice=choice: _core._gemm(a, b, splits=1, **choice)
        else:
            wrong.append(title)
    row["wrong"] = wrong
    row["correct"] = not wrong
    if not kw.current_device().is_simulated:
        taken = alternate(runs, options, torch)
        rates = {title: rate(shape, time) for title, time in taken.items()}
        row["TFLOP/s"] = dict(sorted(rates.items(), key=lambda item: -item[1]))
    return row


def those_that_run(runs: Runs, row: dict[str, Any]) -> Runs:
    """Drops the runs that raise; their messages go into the row."""
    kept = {}
    for title, run in runs.items():
        try:
            run()
            kw.synchronize()
            kept[title] = run
        except Exception as failure:  # peers may raise anything
            row.setdefault("failed", {})[title] = f"{type(failure).__name__}: {failure}"[:500]
    return kept


def typed_subjects(
    subject: gemm_types.Subject, name: str, options: argparse.Namespace, torch: Any
) -> Runs:
    runs: Runs = {"ours": subject.run}
    if options.candidates and name != "float32":
        tiles = _core._gemm_tiles(subject.promotes, subject.block_scales)
        tiles += _core._gemm_tiles(block_scales=subject.block_scales, split_k=True)
        for tile in tiles:
            runs[make_title(tile)] = lambda tile=tile: subject.run(tile=tile, splits=1)
    if torch:
        runs |= subject.peers(torch)
    return runs


def measure_type(
    shape: tuple[int, int, int], name: str, options: argparse.Namespace, torch: Any
) -> dict[str, Any]:
    """A product of another type: what the rule takes, and the peers, or every tile."""
    row: dict[str, Any] = {"shape": shape, "layout": "nt", "type": name, "correct": False}
    subject = gemm_types.subject(name, shape)

    def make_runs(seed: int) -> Runs:
        return typed_subjects(gemm_types.subject(name, shape, seed), name, options, torch)

    runs = typed_subjects(subject, name, options, torch)
    ours = those_that_run({"ours": subject.run}, row)
    runs = {**ours, **those_that_run({t: r for t, r in runs.items() if t != "ours"}, row)}
    row["rule"] = name
    if name != "float32":
        row["rule"] = rule_choice(
            shape,
            in_bytes=subject.in_bytes,
            promotes=subject.promotes,
            block_scales=subject.block_scales,
        )
    if ours:
        row["error"] = relative_error(subject.left, subject.right, subject.run())
        row["correct"] = row["error"] <= subject.tolerance
    if kw.current_device().is_simulated or not ours:
        return row
    nbytes = (shape[0] + shape[1]) * shape[2] * subject.in_bytes
    row["by"], taken = cold_times(runs, make_runs, nbytes, options, torch)
    if options.candidates:
        rates = {title: rate(shape, time) for title, time in taken.items()}
        row["TFLOP/s"] = dict(sorted(rates.items(), key=lambda item: -item[1]))
        return row
    for title, time in taken.items():
        row[title] = {"us": round(time * 1e3, 2), "TFLOP/s": rate(shape, time)}
    for peer in PEERS:
        if peer in taken:
            row[f"of {peer}"] = round(taken[peer] / taken["ours"], 3)
    return row


def show(row: dict[str, Any]) -> None:
    shape = "x".join(str(extent) for extent in row["shape"])
    if "TFLOP/s" in row:
        best = ", ".join(f"{title} {value}" for title, value in list(row["TFLOP/s"].items())[:6])
        text = f"rule: {row['rule']}; {best}"
    elif "ours" in row:
        text = f"ours {row['ours']['TFLOP/s']}, torch {row.get('torch', {}).get('TFLOP/s')} TFLOP/s"
        text += f", {row.get('of torch')} of it; {row['rule']}"
    else:
        text = row["rule"]
    for title, failure in row.get("failed", {}).items():
        text += f"; {title} failed: {failure.splitlines()[0]}"
    kind = row.get("type", row["layout"])
    print(f"{shape} {kind}: {text}{'' if row['correct'] else ' WRONG'}", file=sys.stderr)


def subjects(options: argparse.Namespace) -> list[tuple[tuple[int, int, int], str]]:
    if options.shapes:
        shapes = [tuple(int(part) for part in text.split("x")) for text in options.shapes]
        return [(shape, layout) for shape in shapes for layout in options.layouts]
    if kw.current_device().is_simulated:
        return [(shape, layout) for shape in TINY for layout in ("nt", "nn")]
    squares = SQUARES[:4] if options.candidates else SQUARES
    layers = [(512, 6144, 4096), (4096, 6144, 4096), (4096, 4096, 14336), (4096, 57344, 8192)]
    rest = layers if options.candidates else LAYERS
    return [(shape, layout) for shape in squares for layout in options.layouts] + [
        (shape, "nt") for shape in rest
    ]


def list_subjects(options: argparse.Namespace) -> list[tuple[tuple[int, int, int], str]]:
    shapes = [(96, 192, 160), (200, 136, 384)]
    if options.shapes:
        shapes = [tuple(int(part) for part in text.split("x")) for text in options.shapes]
    elif not kw.current_device().is_simulated:
        shapes = gemm_types.shapes()
    return [(shape, name) for name in options.types.split(",") for shape in shapes]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-o", "--output", type=pathlib.Path, default=harness.RESULTS / "gemm.json")
    parser.add_argument("--candidates", action="store_true", help="measure every tile")
    parser.add_argument("--kernel", choices=("auto", "mma"), default="auto")
    parser.add_argument("--shapes", nargs="+", metavar="MxNxK")
    parser.add_argument("--layouts", nargs="+", choices=("nt", "nn"), default=("nt", "nn"))
    parser.add_argument("--types", help=f"of {', '.join(gemm_types.TYPES)}, between commas")
    parser.add_argument("--dtype", choices=("bfloat16", "float16"), default="bfloat16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1, help="of a measurement of a round")
    parser.add_argument("--warm", action="store_true", help="operands stay in L2 where they fit")
    options = parser.parse_args()
    for name in (options.types or "").split(","):
        if name and name not in gemm_types.TYPES:
            parser.error(f"a type is one of {', '.join(gemm_types.TYPES)}, not {name}")
    torch = torch_or_none()
    machine = harness.machine()
    rows: list[dict[str, Any]] = []
    document: dict[str, Any] = {}
    measure_half = candidates if options.candidates else measure
    run, all_subjects = measure_half, subjects
    if options.types:
        run, all_subjects = measure_type, list_subjects
    for shape, kind in all_subjects(options):
        row = run(shape, kind, options, torch)
        show(row)
        rows.append(row)
        correct = all(row["correct"] for row in rows)
        document = {"subject": "gemm", "machine": machine, "cold": not options.warm}
        document |= {"rows": rows, "correct": correct}
        harness.save(options.output, document)
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
