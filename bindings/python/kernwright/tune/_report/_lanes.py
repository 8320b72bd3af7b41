"""The picture of who worked when: compiles in their lanes, and the device."""

from __future__ import annotations

from kernwright._support import svg as _svg
from kernwright._support.words import counted
from kernwright.tune._report import _analysis
from kernwright.tune._report._charts import figure, tip
from kernwright.tune._report._record import Record, TrialRow

_WIDTH, _LEFT, _ROW = 900, 86, 18
_MOST_SPANS = 3000
_MOST_LANES = 24

Spans = list[tuple[float, float, TrialRow]]


def _row(record: Record, spans: Spans, name: str, y: float, x: _svg.Scale, kind: str) -> list[str]:
    parts = [_svg.label(_LEFT - 8, y + 13, name, "end", "value")]
    parts.append(_svg.segment(_LEFT, y + _ROW - 1, _WIDTH - 10, y + _ROW - 1, "grid"))
    for begin, end, trial in spans:
        shown = kind if trial.correct else f"{kind} failed"
        said = f"{name}, {begin:.2f} to {end:.2f} s\n{tip(record, trial)}"
        parts.append(_svg.box(x(begin), y + 2, x(end) - x(begin), _ROW - 5, shown, said))
    return parts


def _mean_use(spans: Spans, seconds: float) -> float:
    return sum(end - begin for begin, end, _ in spans) / seconds if seconds > 0 else 0.0


def lanes(record: Record) -> str:
    """Empty where the rows say nothing of times."""
    compiles = [(*t.compile_span, t) for t in record.trials if t.compile_span is not None]
    device = [(*t.device_span, t) for t in record.trials if t.device_span is not None]
    if not compiles and not device:
        return ""
    seconds = max(end for _, end, _ in [*compiles, *device])
    if seconds <= 0:
        return ""
    x = _svg.Scale([0.0, seconds], _LEFT, _WIDTH - 10)
    rows = _analysis.lanes(compiles[:_MOST_SPANS])
    parts: list[str] = []
    for place, spans in enumerate(rows[:_MOST_LANES]):
        parts += _row(record, spans, f"compile {place + 1}", place * _ROW, x, "compile")
    y = len(rows[:_MOST_LANES]) * _ROW
    parts += _row(record, device[:_MOST_SPANS], "device", y, x, "device")
    bottom = y + _ROW
    for tick in x.ticks(8):
        parts.append(_svg.segment(x(tick), bottom, x(tick), bottom + 4, "axis"))
        parts.append(_svg.label(x(tick), bottom + 17, f"{tick:.4g} s", "middle"))
    cut = len(compiles) > _MOST_SPANS or len(device) > _MOST_SPANS or len(rows) > _MOST_LANES
    says = (
        f"The device was in use {100 * _analysis.use(device, seconds):.0f} % of {seconds:.1f} s; "
        f"on average {_mean_use(compiles, seconds):.1f} of {counted(len(rows), 'lane')} compiled."
    )
    more = f" The first {_MOST_SPANS} spans and {_MOST_LANES} lanes are shown." if cut else ""
    picture = _svg.picture(parts, _WIDTH, bottom + 26, says, "wide")
    return f"<div class=scroll>{figure(picture, says + more)}</div>"
