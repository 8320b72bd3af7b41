"""The page of a log: a curve for each number, beside what the runs said of themselves."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

from kernwright._support import html as _html
from kernwright._support import svg as _svg
from kernwright._support.words import counted
from kernwright.train._log_file import LogRecord, number_of
from kernwright.train._panel import value_text

_MOST_POINTS = 1000
_FIRST = ("loss", "validation_loss", "lr", "grad_norm", "tokens_per_second", "mfu")
_NO_CURVES = ("step", "seconds", "tokens")
_EXACT = ("lr", "loss_scale")  # curves without noise
_SMOOTHING = 0.01  # of the steps: the time constant of the average
_STYLE = """
.cards { display: grid; gap: .7em; grid-template-columns: repeat(auto-fit, minmax(9.5em, 1fr)); }
.card { background: var(--panel); border: 1px solid var(--line); border-radius: .6em;
padding: .7em .9em; display: flex; flex-direction: column; } .card b { font-size: 1.4em; }
.charts { display: grid; gap: 1.2em 2em; align-items: start; margin-top: 1.2em;
grid-template-columns: repeat(auto-fit, minmax(min(100%, 26em), 1fr)); }
figure { margin: 0; min-width: 0; } svg { width: 100%; height: auto; display: block; }
figcaption, .card span { color: var(--soft); font-size: .87em; }
svg text { font: 12px system-ui, sans-serif; fill: var(--soft); }
svg .name { fill: var(--ink); } .grid { stroke: var(--line); stroke-width: .7; }
.axis { stroke: var(--soft); } polyline { fill: none; stroke: var(--accent); stroke-width: 1.8; }
polyline.raw { stroke: var(--soft); stroke-width: 1; stroke-opacity: .55; }
"""


def page_of(record: LogRecord) -> str:
    """The whole page."""
    run = record.runs[-1] if record.runs else {}
    names = dict.fromkeys(name for row in record.rows for name in row)
    ordered = [*(n for n in _FIRST if n in names), *(n for n in names if n not in _FIRST)]
    figures = [_figure(record.rows, name) for name in ordered if name not in _NO_CURVES]
    body = f"{_cards(record)}<div class=charts>{''.join(figures)}</div>{_notes(run)}"
    return _html.page(str(run.get("title", "training")), body, _STYLE)


def _cards(record: LogRecord) -> str:
    if not record.rows:
        return "<p>No step has been logged.</p>"
    cards = [
        f"<div class=card><span>{html.escape(name.replace('_', ' '))}</span>"
        f"<b>{html.escape(value_text(name, value))}</b></div>"
        for name, value in record.rows[-1].items()
    ]
    return f"<div class=cards>{''.join(cards)}</div>"


def _notes(run: dict[str, Any]) -> str:
    told = {name: run[name] for name in ("device", "begun", "kernwright") if run.get(name)}
    peak = run.get("peak_flops")
    told["peak"] = "unknown" if peak is None else f"{peak / 1e12:.4g} Tflop/s"
    if peak is not None and run.get("peak_source"):
        told["peak"] += f" ({run['peak_source']})"
    rows = [(name, str(value)) for name, value in {**told, **run.get("notes", {})}.items()]
    return _html.table(("this run", ""), rows, texts=2)


def _figure(rows: Sequence[dict[str, Any]], name: str) -> str:
    """The curve of one number over the steps; nothing for texts."""
    found = [
        (row["step"], number)
        for row in rows
        if name in row and (number := number_of(row[name])) is not None
    ]
    points = [(float(step), number) for step, number in found if math.isfinite(number)]
    lost = [step for step, number in found if not math.isfinite(number)]
    if not points:
        return ""
    shown = points[:: -(-len(points) // _MOST_POINTS)]
    shown += [] if shown[-1] == points[-1] else points[-1:]
    plot = _svg.Plot(
        [x for x, _ in shown], [y for _, y in shown], y_text=lambda v: value_text(name, v)
    )
    label = name.replace("_", " ")
    plot.axes("step", label)
    smooth = [] if name in _EXACT else _smoothed(points, shown)
    if smooth:
        plot.parts.append(_svg.path(_places(plot, shown), "raw"))
    plot.parts.append(_svg.path(_places(plot, smooth or shown), "curve"))
    if len(points) == 1:
        plot.parts.append(_svg.dot(*_places(plot, points)[0], 3, "axis"))
    caption = f"{label}: {value_text(name, points[-1][1])} at step {int(points[-1][0])}"
    if lost:
        caption += f"; not finite at {counted(len(lost), 'step')}, first at {lost[0]}"
    picture = plot.svg(caption)
    return f"<figure>{picture}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _places(plot: _svg.Plot, points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(plot.x(x), plot.y(y)) for x, y in points]


def _smoothed(
    points: Sequence[tuple[float, float]], shown: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """The mean of the exponential averages from the left and from the right, which does not lag, at
    the steps that are shown; nothing for few points."""
    if len(points) < 50:
        return []
    keep = 1 - 1 / max(2.0, _SMOOTHING * len(points))
    values = [y for _, y in points]
    both = zip(_averages(values, keep), reversed(_averages(values[::-1], keep)), strict=True)
    wanted = {x for x, _ in shown}
    return [(x, (a + b) / 2) for (x, _), (a, b) in zip(points, both, strict=True) if x in wanted]


def _averages(values: Sequence[float], keep: float) -> list[float]:
    """Exponential averages without a bias to the first value."""
    average, weight, made = 0.0, 0.0, []
    for value in values:
        average, weight = keep * average + (1 - keep) * value, keep * weight + (1 - keep)
        made.append(average / weight)
    return made
