"""The first page of docs/figures.md: how many times as fast as the best peer, a row for each kind
of work, and a picture of the rows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from report_text import load

PICTURE = "pictures/figures.svg"
WIDTH, NAMES, ROW = 760, 250, 24  # pixels: the picture, the names of rows, the height of a row
LEAST, MOST = 0.5, 8.0  # the axis, by its logarithm


class Summary(NamedTuple):
    """The times of the peer divided by ours, over all rows of a document."""

    name: str
    device: str
    peer: str
    ratios: list[float]

    @property
    def mean(self) -> float:
        return statistics.geometric_mean(self.ratios)


def _by_microseconds(row: dict[str, Any]) -> float | None:
    """The fastest peer's time, of the figures beside "ours"."""
    peers = [
        figure["us"]
        for name, figure in row.items()
        if not name.startswith("ours") and isinstance(figure, dict) and "us" in figure
    ]
    return min(peers) / row["ours"]["us"] if peers and "us" in row.get("ours", {}) else None


def _grouped(row: dict[str, Any]) -> float | None:
    return _by_microseconds(row["figures"])


def _recurrent(row: dict[str, Any]) -> float | None:
    ratio: float | None = row.get("graph", row.get("device", {})).get("torch / ours")
    return ratio


def _operation(row: dict[str, Any]) -> float | None:
    return row.get("times_best_peer") if row["status"] == "ok" else None


# Name, document, peer, ratio of a row.
KINDS: tuple[tuple[str, str, str, Callable[[dict[str, Any]], float | None]], ...] = (
    ("products, bfloat16", "gemm", "torch (cuBLAS)", _by_microseconds),
    ("products, float16", "gemm_float16", "torch (cuBLAS)", _by_microseconds),
    ("products, float8, int8, tf32, float32", "gemm_types", "torch, DeepGEMM", _by_microseconds),
    ("products of few rows", "gemv", "torch", _by_microseconds),
    ("products with packed weights", "gemv_formats", "torch", _by_microseconds),
    ("products of groups of rows", "grouped", "torch, DeepGEMM", _grouped),
    ("attention", "attention", "torch's best backend", _by_microseconds),
    ("decode attention", "decode_attention", "torch's best backend", _by_microseconds),
    ("convolutions", "conv", "torch (cuDNN)", _by_microseconds),
    ("LSTM and GRU", "recurrent", "torch (cuDNN)", _recurrent),
    ("functions of arrays", "operations", "best of torch, CuPy, Triton", _operation),
    ("functions of arrays, random shapes", "random_shapes", "torch", _operation),
)


def summaries() -> Iterator[Summary]:
    for name, source, peer, find_ratio in KINDS:
        document = load(source)
        if document is None:
            continue
        device = (document.get("machine") or {}).get("device") or document["device"]["name"]
        found = [find_ratio(row) for row in document["rows"] if row.get("correct", True)]
        ratios = [ratio for ratio in found if ratio is not None]
        if ratios:
            yield Summary(name, device, peer, ratios)


def summary() -> str:
    """The table, behind the picture."""
    lines = [
        f"![How many times as fast as the best peer, by kind of work]({PICTURE})\n",
        "The time of the best peer divided by ours; above 1 ours is faster. The tables below have",
        "the rows of each kind.\n",
        "| kind of work | device | peer | cases | geometric mean | least | most |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in summaries():
        lines.append(
            f"| {each.name} | {each.device} | {each.peer} | {len(each.ratios)} | {each.mean:.2f}x "
            f"| {min(each.ratios):.2f}x | {max(each.ratios):.2f}x |"
        )
    return "\n".join(lines) + "\n"


def _place(ratio: float) -> float:
    """The place on the axis in pixels; ratios outside are at its ends."""
    part = math.log(min(max(ratio, LEAST), MOST) / LEAST) / math.log(MOST / LEAST)
    return NAMES + part * (WIDTH - NAMES - 20)


def picture() -> str:
    """The SVG: a line from the least to the greatest ratio, a point at the mean."""
    rows = list(summaries())
    height = ROW * (len(rows) + 2)
    bottom = height - ROW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for tick in (0.5, 1, 2, 4, 8):
        x = _place(tick)
        color = "#444" if tick == 1 else "#ddd"
        parts.append(f'<line x1="{x:.1f}" y1="8" x2="{x:.1f}" y2="{bottom}" stroke="{color}"/>')
        parts.append(f'<text x="{x:.1f}" y="{height - 8}" text-anchor="middle">{tick}x</text>')
    for number, each in enumerate(rows):
        y = ROW * (number + 1)
        least, mean, most = (
            _place(ratio) for ratio in (min(each.ratios), each.mean, max(each.ratios))
        )
        parts.append(f'<text x="{NAMES - 10}" y="{y + 4}" text-anchor="end">{each.name}</text>')
        parts.append(
            f'<line x1="{least:.1f}" y1="{y}" x2="{most:.1f}" y2="{y}" stroke="#8ab" '
            'stroke-width="5"/>'
        )
        parts.append(f'<circle cx="{mean:.1f}" cy="{y}" r="5" fill="#147"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"
