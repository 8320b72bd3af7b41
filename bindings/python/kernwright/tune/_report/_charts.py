"""The pictures of a tuning report."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from kernwright._support import svg as _svg
from kernwright._support.words import counted, pairs_text, time_text
from kernwright.tune._report import _analysis
from kernwright.tune._report._analysis import Importance, PairMap
from kernwright.tune._report._record import Record, TrialRow, text

_MOST_DOTS = 1500
_MOST_BARS = 16
_MOST_CELLS = 24  # along one side of a map
_MOST_INTERVALS = 12


def value_text(record: Record, value: float | None) -> str:
    """12.3 us, 0.5536 ms, 2.1 s; 1,234,567 where the value is no time."""
    if value is None:
        return "unknown"
    if not record.in_ms:
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.5g}"
    return time_text(value)


def objective_text(record: Record) -> str:
    if record.in_ms:
        return "time"
    return "counted cost" if record.is_counted else record.objective


def config_text(config: dict[str, object]) -> str:
    return pairs_text({name: text(value) for name, value in config.items()})


def tip(record: Record, trial: TrialRow) -> str:
    shown = value_text(record, trial.value) if trial.correct else trial.status
    return f"trial {trial.number}: {shown}\n{config_text(trial.config)}"


def figure(picture: str, caption: str) -> str:
    return f"<figure>{picture}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _spread(items: Sequence[tuple[float, TrialRow]]) -> Sequence[tuple[float, TrialRow]]:
    step = math.ceil(len(items) / _MOST_DOTS)
    return items[:: max(step, 1)]


def progress(record: Record, over_time: bool) -> str:
    """Each trial as a dot and the best so far as a line."""
    places: list[tuple[float, TrialRow]] = []
    for place, trial in enumerate(record.trials, 1):
        if trial.value is not None and (trial.ended_s is not None or not over_time):
            places.append((trial.ended_s or 0.0 if over_time else float(place), trial))
    if not places:
        return ""
    bests = {id(trial) for trial in _analysis.best_so_far(record)}
    end = max(x for x, _ in places) if over_time else float(len(record.trials))
    plot = _svg.Plot(
        [0.0, end, *(x for x, _ in places)], [t.value or 0.0 for _, t in places], log_y=True,
        y_text=lambda v: value_text(record, v),
    )  # fmt: skip
    name = "seconds" if over_time else "trials"
    plot.axes(name, objective_text(record))
    for x, trial in _spread(places):
        y = plot.y(trial.value or 0.0)
        plot.parts.append(_svg.dot(plot.x(x), y, 2.2, "trial", tip(record, trial)))
    corners = [(plot.x(x), plot.y(t.value or 0.0)) for x, t in places if id(t) in bests]
    plot.parts.append(_svg.path(_svg.stairs(corners, plot.x(end)), "best"))
    best = min(t.value or 0.0 for _, t in places)
    for x, trial in places:
        if id(trial) in bests:
            spot = plot.x(x), plot.y(trial.value or 0.0)
            plot.parts.append(_svg.dot(*spot, 3.2, "mark", tip(record, trial)))
    says = f"Best so far over {name}: {value_text(record, best)} at the end"
    return figure(plot.svg(says), f"The best so far over {name}; each dot is a trial.")


def importance(found: Importance) -> str:
    shown = list(found.shares.items())[:_MOST_BARS]
    longest = max(len(name) for name, _ in shown)
    left = min(200, 20 + 8 * longest)
    top = max(max(share for _, share in shown), 1e-9)
    row, width = 24, 440
    parts = []
    for place, (name, share) in enumerate(shown):
        y = place * row + 4
        reach = (width - left - 60) * share / top
        short = name if len(name) <= 25 else name[:24] + "..."
        parts.append(_svg.label(left - 8, y + 13, short, "end", "value"))
        parts.append(_svg.box(left, y + 2, reach, 14, "bar", f"{name}: {100 * share:.1f} %"))
        parts.append(_svg.label(left + reach + 6, y + 13, f"{100 * share:.0f} %"))
    says = "Importance: " + ", ".join(f"{name} {100 * share:.0f} %" for name, share in shown)
    return figure(
        _svg.picture(parts, width, len(shown) * row + 8, says),
        "The share of the variance that would vanish if the parameter were held.",
    )


def _short(value: float) -> str:
    """Three digits: 0.553, 12.3, 3.46k"""
    for factor, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g}{unit}"
    return f"{value:.3g}"


def pair_map(record: Record, found: PairMap) -> str:
    """The best value of each pair: dark is good."""
    columns, rows = found.column_values[:_MOST_CELLS], found.row_values[:_MOST_CELLS]
    known = [best for best, _ in found.cells.values() if best is not None]
    if not known:
        return ""
    scale = _svg.Scale(known, 0.0, 1.0, log=True)
    row_texts, column_texts = ([text(v)[:8] for v in values] for values in (rows, columns))
    left, top = max(62.0, 26 + _svg.text_width(row_texts)), 6
    cell_w = (440 - left - 8) / len(columns)
    cell_h = min(34.0, max(18.0, 250 / len(rows)))
    wide = cell_w >= 38
    parts = []
    for i, row_value in enumerate(rows):
        y = top + i * cell_h
        parts.append(_svg.label(left - 6, y + cell_h / 2 + 4, row_texts[i], "end"))
        for j, column_value in enumerate(columns):
            best, count = found.cells.get((i, j), (None, 0))
            where = f"{found.rows}={text(row_value)}, {found.columns}={text(column_value)}"
            x = left + j * cell_w
            if best is None:
                said = f"{counted(count, 'trial')}, none correct" if count else "not tried"
                kind = "failed" if count else "empty"
                parts.append(_svg.box(x, y, cell_w - 1, cell_h - 1, kind, f"{where}: {said}"))
                continue
            colour, ink = _svg.shade(scale(best))
            said = f"{where}: {value_text(record, best)}, {counted(count, 'trial')}"
            parts.append(_svg.box(x, y, cell_w - 1, cell_h - 1, "cell", said, colour))
            if wide:
                number = _short(best)
                parts.append(
                    f'<text x="{x + cell_w / 2:.1f}" y="{y + cell_h / 2 + 4:.1f}" class="on" '
                    f'text-anchor="middle" style="fill:{ink}">{number}</text>'
                )
    bottom = top + len(rows) * cell_h
    every = math.ceil((_svg.text_width(column_texts) + 6) / cell_w)
    for j in range(0, len(columns), every):
        x = left + (j + 0.5) * cell_w
        parts.append(_svg.label(x, bottom + 15, column_texts[j], "middle"))
    parts.append(_svg.label(left + (440 - left) / 2, bottom + 32, found.columns, "middle", "name"))
    parts.append(_svg.turned((top + bottom) / 2, found.rows))
    cut = len(rows) < len(found.row_values) or len(columns) < len(found.column_values)
    more = f" The first {_MOST_CELLS} values of each are shown." if cut else ""
    unit = " (ms)" if record.in_ms else ""
    says = (
        f"The best {objective_text(record)}{unit} for each {found.rows} and {found.columns}: dark "
        "is good, dashed all failed, empty was not tried."
    )
    return figure(_svg.picture(parts, 440, bottom + 40, says), says + more)


def distribution(record: Record) -> str:
    """How many trials have which value, in bins that are even on a logarithmic scale."""
    values = [trial.value or 0.0 for trial in record.correct]
    if len(values) < 3 or min(values) == max(values):
        return ""
    bins = min(40, max(8, round(2 * len(values) ** 0.5)))
    scale = _svg.Scale(values, 0.0, float(bins), log=True)
    counts = [0] * bins
    for value in values:
        counts[min(int(scale(value)), bins - 1)] += 1
    plot = _svg.Plot(
        values, [0.0, float(max(counts))], log_x=True, x_text=lambda v: value_text(record, v)
    )
    plot.axes(objective_text(record), "trials")
    step = (plot.x.end - plot.x.begin) / bins
    base = plot.y(0.0)
    for place, count in enumerate(counts):
        if count:
            height = base - plot.y(float(count))
            x = plot.x.begin + place * step
            said = counted(count, "trial")
            parts = _svg.box(x + 0.5, base - height, step - 1, height, "bar", said)
            plot.parts.append(parts)
    marks = [
        ("best", record.best.value if record.best else None),
        ("default", record.default_value),
    ]
    for row, (name, mark) in enumerate(marks):
        if mark is not None and plot.x.low <= mark <= plot.x.high:
            x = plot.x(mark)
            plot.parts.append(_svg.segment(x, plot.TOP, x, base, f"rule {name}"))
            anchor = "end" if x > plot.width * 0.8 else "start"
            shift = -4 if anchor == "end" else 4
            plot.parts.append(
                _svg.label(x + shift, plot.TOP + 10 + 13 * row, name, anchor, "value")
            )
    says = f"How {counted(len(values), 'correct trial')} are spread over {objective_text(record)}."
    return figure(plot.svg(says), says)


def noise(record: Record) -> str:
    """The samples and the interval of the best ones: what overlaps is not told apart."""
    shown = [t for t in record.correct[:_MOST_INTERVALS] if t.times or t.interval]
    if not shown:
        return ""
    inner = [v for t in shown for v in (*t.interval, t.value or 0.0)]
    top = max(inner) + 0.6 * (max(inner) - min(inner))
    samples = {t.number: [v for v in t.times if v <= top] for t in shown}
    hidden = sum(len(t.times) - len(samples[t.number]) for t in shown)
    every = [*inner, *(v for values in samples.values() for v in values)]
    row = 20
    height = len(shown) * row + _svg.Plot.TOP + _svg.Plot.BOTTOM
    plot = _svg.Plot(every, [0.0, 1.0], height=height, x_text=lambda v: value_text(record, v))
    plot.columns(objective_text(record))
    ties = {trial.number for trial in record.ties}
    for place, trial in enumerate(shown):
        y = plot.TOP + (place + 0.5) * row
        kind = "winner" if trial is record.best else "tie" if trial.number in ties else "rest"
        for value in samples[trial.number]:
            plot.parts.append(_svg.dot(plot.x(value), y, 1.8, "sample"))
        if trial.interval:
            low, high = (plot.x(v) for v in trial.interval)
            plot.parts.append(_svg.box(low, y - 4, high - low, 8, f"span {kind}"))
        spot = plot.x(trial.value or 0.0)
        plot.parts.append(_svg.dot(spot, y, 4, f"centre {kind}", tip(record, trial)))
        name = f"{trial.number}{' *' if kind != 'rest' else ''}"
        plot.parts.append(_svg.label(plot.left - 6, y + 4, name, "end"))
    more = f" {counted(hidden, 'sample')} beyond the right edge." if hidden else ""
    says = f"The {counted(len(shown), 'best trial')} with samples and intervals."
    return figure(plot.svg(says), f"{says} A star marks the winner and what ties with it.{more}")


def _metric_text(record: Record, name: str) -> _svg.Text:
    return (lambda v: value_text(record, v)) if name == record.objective else _svg.plain


def front(record: Record, names: Sequence[str]) -> tuple[str, list[TrialRow]]:
    """The trials over the first two metrics, and those on the front of all of them."""
    rows: list[tuple[tuple[float, ...], TrialRow]] = []
    for trial in record.correct:
        values = [_analysis.metric(record, trial, name) for name in names]
        if None not in values:
            rows.append((tuple(v for v in values if v is not None), trial))
    if len(rows) < 2:
        return "", []
    chosen = _analysis.pareto_front([point for point, _ in rows])
    x_text, y_text = (_metric_text(record, name) for name in names[:2])
    plot = _svg.Plot(
        [p[0] for p, _ in rows], [p[1] for p, _ in rows], log_x=True, log_y=True,
        x_text=x_text, y_text=y_text,
    )  # fmt: skip
    plot.axes(names[0], names[1])
    on_front = set(chosen)
    for place, (point, trial) in enumerate(rows[:_MOST_DOTS]):
        if place not in on_front:
            spot = plot.x(point[0]), plot.y(point[1])
            plot.parts.append(_svg.dot(*spot, 2.2, "trial", tip(record, trial)))
    corners = [(plot.x(rows[i][0][0]), plot.y(rows[i][0][1])) for i in chosen]
    if len(names) == 2:
        plot.parts.append(_svg.path(_svg.stairs(corners, corners[-1][0]), "best"))
    for place, spot in zip(chosen, corners, strict=True):
        plot.parts.append(_svg.dot(*spot, 3.6, "mark", tip(record, rows[place][1])))
    says = f"{counted(len(chosen), 'trial')} that no other beats in {', '.join(names)}."
    return figure(plot.svg(says), says), [rows[i][1] for i in chosen]
