"""Products of groups of float8 rows with scales of blocks, ours beside torch's and our bfloat16.

Cases are those of DeepGEMM's tables of grouped products, whose published figures stand beside ours
(its README at the first release, commit a6d97a1, on an H800: another machine), and layers of
grouped.py. DeepGEMM itself takes turns with ours where its package is installed. torch has scales
of rows alone: `torch._scaled_grouped_mm`, and `torch._scaled_mm` for each group, with the tensor
cores' own sums. Errors are against the float8 numbers times their scales, in float64. The simulated
device checks only the results, with small shapes and no timing.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import pathlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import deep_gemm_peer
import grouped
import numpy as np

import harness
import kernwright as kw
from kernwright import _core

SOURCE = "DeepGEMM, README at a6d97a1 (first release), H800"
TOLERANCE = 4e-3


class Case(NamedTuple):
    """Groups of these sizes times matrices of n x k; TFLOP/s that DeepGEMM published."""

    title: str
    sizes: tuple[int, ...]
    n: int
    k: int
    published: int | None = None

    @property
    def is_masked(self) -> bool:
        return self.title == "masked"


def cases() -> list[Case]:
    tables = [
        ("contiguous", 4, 8192, 4096, 7168, 1297),
        ("contiguous", 4, 8192, 7168, 2048, 1099),
        ("contiguous", 8, 4096, 4096, 7168, 1288),
        ("contiguous", 8, 4096, 7168, 2048, 1093),
        ("masked", 1, 1024, 4096, 7168, 1233),
        ("masked", 1, 1024, 7168, 2048, 925),
        ("masked", 2, 512, 4096, 7168, 1040),
        ("masked", 2, 512, 7168, 2048, 916),
        ("masked", 4, 256, 4096, 7168, 932),
        ("masked", 4, 256, 7168, 2048, 815),
    ]
    all_cases = [
        Case(title, (rows,) * groups, n, k, published)
        for title, groups, rows, n, k, published in tables
    ]
    for layer, tokens in ((2, 128), (2, 4096), (3, 4096)):
        of = grouped.LAYERS[layer]
        sizes = grouped.sizes_of(of, tokens, skewed=True).tolist()
        all_cases.append(Case(f"{of.title}, {tokens} tokens, skewed", tuple(sizes), of.n, of.k))
    return all_cases


TINY = [
    Case("contiguous", (70, 0, 3, 130), 136, 272),
    Case("masked", (16, 16), 128, 256),
]


class Operands(NamedTuple):
    """Rows and matrices, with scales of blocks, the same with scales of rows, and in bfloat16."""

    blocks: tuple[kw.Array, kw.Array, kw.Array, kw.Array]  # x, weights, scale_a, scale_b
    lines: tuple[kw.Array, kw.Array, kw.Array, kw.Array]
    wide: tuple[kw.Array, kw.Array]
    numbers: kw.Array  # counts of a masked case, else the ends


def operands(case: Case) -> Operands:
    groups, rows = len(case.sizes), sum(case.sizes)
    x = kw.random.normal((rows, case.k), seed=1).astype("bfloat16")
    weights = kw.empty((groups, case.n, case.k), "bfloat16")
    for group in range(groups):
        weights[group] = kw.random.normal((case.n, case.k), seed=2 + group).astype("bfloat16")
    q, of_x = kw.nn.quantize_blocks(x)
    codes, of_w = kw.nn.quant.quantize(weights, "fp8_block")
    q_rows, lines_x = kw.nn.quantize_rows(x, "float8_e4m3fn")
    codes_rows, lines_w = kw.nn.quantize_rows(weights, "float8_e4m3fn")
    numbers = np.array(case.sizes, np.int32)
    return Operands(
        (q, codes, of_x, of_w),
        (q_rows, codes_rows, lines_x, lines_w),
        (x, weights),
        kw.asarray(numbers if case.is_masked else np.cumsum(numbers).astype(np.int32)),
    )


def error_of(case: Case, of: Operands, result: kw.Array) -> float:
    """||out - reference|| / ||reference|| of the groups' first and last rows, in float64."""
    x, weights, scale_a, scale_b = of.blocks
    ends, columns = np.cumsum(case.sizes), min(case.n, 256)
    wrong = right = 0.0
    for group in np.unique(np.linspace(0, len(ends) - 1, 8).astype(int)):
        if case.sizes[group] == 0:
            continue
        edges = np.unique([ends[group] - case.sizes[group], ends[group] - 1])
        rows = kw.asarray(edges)
        each = np.repeat(kw.take(scale_a, rows, axis=0).numpy().astype(np.float64), 128, 1)
        left = kw.take(x, rows, axis=0).numpy().astype(np.float64) * each[:, : case.k]
        tiles = scale_b[int(group)].numpy().astype(np.float64)
        each = np.repeat(np.repeat(tiles, 128, 0), 128, 1)[:columns, : case.k]
        expected = left @ (weights[int(group), :columns].numpy().astype(np.float64) * each).T
        got = kw.take(result, rows, axis=0).numpy().astype(np.float64)[:, :columns]
        wrong += float(((got - expected) ** 2).sum())
        right += float((expected**2).sum())
    return (wrong / right) ** 0.5 if right else 0.0


def ours(case: Case, of: Operands, **more: Any) -> Callable[[], kw.Array]:
    """With the scales of blocks. Rows of a masked case are groups that lie apart."""
    x, weights, scale_a, scale_b = of.blocks
    if case.is_masked:
        shape = (len(case.sizes), case.sizes[0])
        x, scale_a = x.reshape(*shape, case.k), scale_a.reshape(*shape, -1)
    kind = "counts" if case.is_masked else "ends"
    options = {"scale_a": scale_a, "scale_b": scale_b, **more}
    return lambda: _core._grouped_product(x, weights, of.numbers, kind, **options)


def runs(case: Case, of: Operands, torch: Any) -> dict[str, Callable[[], Any]]:
    """All that is measured. Groups follow each other, but in ours of a masked case."""
    ends = kw.asarray(np.cumsum(case.sizes).astype(np.int32))
    x, weights, lines_x, lines_w = of.lines
    lines = {"scale_a": lines_x, "scale_b": lines_w}
    subjects: dict[str, Callable[[], Any]] = {
        "ours": ours(case, of),
        "ours, scales of rows": lambda: _core._grouped_product(x, weights, ends, "ends", **lines),
        "ours with SwiGLU": ours(case, of, gate="silu"),
        "ours, bfloat16": lambda: _core._grouped_product(*of.wide, ends, "ends"),
    }
    if torch:
        subjects |= torch_runs(case, of, ends, torch)
        if importlib.util.find_spec("deep_gemm"):
            subjects["DeepGEMM"] = deep_gemm_run(case, of, torch)
    return subjects


def float8(torch: Any, array: kw.Array) -> Any:
    """DLPack of older versions has no float8."""
    return torch.from_dlpack(array.view("uint8")).view(torch.float8_e4m3fn)


def deep_gemm_run(case: Case, of: Operands, torch: Any) -> Callable[[], Any]:
    x, weights = (float8(torch, array) for array in of.blocks[:2])
    of_x, of_w = (torch.from_dlpack(array) for array in of.blocks[2:])
    if case.is_masked:
        shape = (len(case.sizes), case.sizes[0])
        x, of_x = x.reshape(*shape, -1), of_x.reshape(*shape, -1)
        return deep_gemm_peer.masked(torch, (x, of_x), (weights, of_w), case.sizes)
    return deep_gemm_peer.groups(torch, (x, of_x), (weights, of_w), case.sizes)


def torch_runs(
    case: Case, of: Operands, ends: kw.Array, torch: Any
) -> dict[str, Callable[[], Any]]:
    x, weights = (float8(torch, array) for array in of.lines[:2])
    of_x, of_w = (torch.from_dlpack(array) for array in of.lines[2:])
    offsets = torch.from_dlpack(ends)
    options = {"out_dtype": torch.bfloat16, "use_fast_accum": True}
    edges = [0, *np.cumsum(case.sizes).tolist()]

    def loop() -> list[Any]:
        """The ends are read on the host, so a graph cannot hold this."""
        return [
            torch._scaled_mm(
                x[begin:end], weights[g].T, of_x[begin:end, None], of_w[g][None], **options
            )
            for g, (begin, end) in enumerate(itertools.pairwise(edges))
            if end > begin
        ]

    found: dict[str, Callable[[], Any]] = {"torch._scaled_mm, group by group": loop}
    if hasattr(torch, "_scaled_grouped_mm"):
        found["torch._scaled_grouped_mm"] = lambda: torch._scaled_grouped_mm(
            x, weights.mT, of_x, of_w, offs=offsets, **options
        )
    return found


def candidates(case: Case, of: Operands) -> dict[str, Callable[[], Any]]:
    """Measures every tile."""
    subjects = {"ours": ours(case, of)}
    for tile in _core._gemm_tiles(True, True):
        if tile[0] <= 128:
            rows, columns, stages, groups, _, cluster = tile
            title = f"{rows}x{columns} {stages} stages {groups} groups cluster {cluster}"
            subjects[title] = ours(case, of, tile=tile)
    return subjects


def measure(case: Case, options: argparse.Namespace, torch: Any) -> dict[str, Any]:
    of = operands(case)
    groups, rows = len(case.sizes), sum(case.sizes)
    row: dict[str, Any] = {
        "case": case.title,
        "groups": groups,
        "rows": rows,
        "n": case.n,
        "k": case.k,
        "choice": _core._grouped_choice(
            rows,
            case.n,
            case.k,
            groups,
            of_blocks=True,
            capacity=case.sizes[0] if case.is_masked else 0,
        ),
    }
    if case.published:
        row["published"] = {"TFLOP/s": case.published, "source": SOURCE}
    row["error"] = error_of(case, of, ours(case, of)().reshape(rows, case.n))
    row["correct"] = row["error"] < TOLERANCE
    if kw.current_device().is_simulated:
        return row
    problem = grouped.Problem(of.blocks[0], of.blocks[1], of.numbers, np.array(case.sizes))
    subjects = candidates(case, of) if options.candidates else runs(case, of, torch)
    row["figures"] = grouped.alternate(problem, subjects, options, torch)
    for figure in row["figures"].values():
        figure.pop("TB/s of weights", None)
    peers = [figure["us"] for name, figure in row["figures"].items()
             if name.startswith("torch") and "us" in figure]  # fmt: skip
    if peers:
        row["of torch"] = round(min(peers) / row["figures"]["ours"]["us"], 3)
    if "us" in row["figures"].get("DeepGEMM", {}):
        row["of DeepGEMM"] = round(
            row["figures"]["DeepGEMM"]["us"] / row["figures"]["ours"]["us"], 3
        )
    return row


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "-o", "--output", type=pathlib.Path, default=harness.RESULTS / "grouped_float8.json"
    )
    parser.add_argument("--candidates", action="store_true", help="measure every tile")
    parser.add_argument("--cases", type=int, nargs="+", help="only these, from 0")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1, help="of a measurement of a round")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    torch = grouped.torch_or_none()
    chosen = TINY if kw.current_device().is_simulated else cases()
    if options.cases:
        chosen = [chosen[number] for number in options.cases]
    document: dict[str, Any] = {
        "subject": "grouped float8", "machine": harness.machine(), "rows": []
    }  # fmt: skip
    for case in chosen:
        row = measure(case, options, torch)
        print(row, file=sys.stderr, flush=True)
        document["rows"].append(row)
        document["correct"] = all(each["correct"] for each in document["rows"])
        harness.save(options.output, document)
    harness.write(options.output, document)


if __name__ == "__main__":
    main()
