"""A snapshot of device memory as one HTML page with SVG pictures, which loads nothing."""

from __future__ import annotations

import html
from typing import Any

from kernwright._core import _describe_bytes as size_text
from kernwright._support import html as pages
from kernwright._support import svg
from kernwright._support.words import counted, time_text

WIDTH, HEIGHT = 960, 220
BAR = 16
MOST_SEGMENTS = 400
KINDS = ("used", "padding", "free", "held")
STYLE = """
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin: 1.6em 0 .3em; }
table { border-collapse: collapse; } td, th { padding: .1em .8em .1em 0; text-align: left; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
svg { display: block; width: 100%; height: auto; }
.key span { display: inline-block; width: .9em; height: .9em; margin: 0 .3em 0 1em; }
.used { fill: var(--accent); background: var(--accent); }
.padding { fill: var(--soft); background: var(--soft); }
.free { fill: var(--line); background: var(--line); }
.held { fill: var(--warm); background: var(--warm); }
.curve { stroke: var(--ink); stroke-width: .8; }
.broken { fill: none; stroke: var(--bad); stroke-width: 1.2; background: var(--bad); }
"""


def key(kind: str, name: str) -> str:
    return f'<span class="{kind}"></span>{name}'


def fragmentation(sample: dict[str, Any]) -> float:
    """How much of the free memory is not in its largest piece: 0 for none, near 1 for dust."""
    free = sample["reserved"] - sample["used"]
    return max(0.0, 1 - sample["largest_free"] / free) if free > 0 else 0.0


def history(samples: list[dict[str, Any]]) -> str:
    if len(samples) < 2:
        return "<p>No history.</p>"
    last = max(samples[-1]["operation"], 1)
    top = max(max(s["reserved"] for s in samples), 1)

    def curve(name: str) -> list[tuple[float, float]]:
        return [(WIDTH * s["operation"] / last, HEIGHT * (1 - s[name] / top)) for s in samples]

    def area(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(points[0][0], HEIGHT), *points, (points[-1][0], HEIGHT)]

    broken = [(WIDTH * s["operation"] / last, HEIGHT * (1 - fragmentation(s))) for s in samples]
    seconds = samples[-1]["seconds"] - samples[0]["seconds"]
    operations = f"{last:,} operation{'' if last == 1 else 's'}"
    parts = [
        svg.path(area(curve("reserved")), "free curve"),
        svg.path(area(curve("used")), "used curve"),
        svg.path(broken, "broken"),
    ]
    keys = (
        key("used", "used") + key("free", f"reserved (top: {size_text(top)})")
        + key("broken", "fragmentation of free memory (top: 1)")
    )  # fmt: skip
    return (
        svg.picture(parts, WIDTH, HEIGHT, "use over time")
        + f'<p class="key">{keys} over {operations} in {time_text(1000 * seconds)}</p>'
    )


def segment(data: dict[str, Any], widest: int, y: float) -> str:
    scale = WIDTH / widest
    parts = []
    for block in data["blocks"]:
        x, width = block["offset"] * scale, block["bytes"] * scale
        where = f"{data['address'] + block['offset']:#x}, {size_text(block['bytes'])}"
        if block["state"] == "free":
            whose = f"of stream {block['stream']}" if block["stream"] else "for every stream"
            parts.append(svg.box(x, y, width, BAR, "free", f"free {whose}: {where}"))
            continue
        title = f"{block['state']}: {where}, from {block['place'] or 'an unknown place'}"
        parts.append(svg.box(x, y, width, BAR, "padding", title))
        asked = block["requested"] * scale
        parts.append(svg.box(x, y, asked, BAR, block["state"], title))
    return "".join(parts)


def segments(data: list[dict[str, Any]]) -> str:
    if not data:
        return "<p>No memory is reserved.</p>"
    shown = sorted(data, key=lambda s: -s["bytes"])[:MOST_SEGMENTS]
    widest = shown[0]["bytes"]
    height = len(shown) * (BAR + 4)
    bars = [segment(entry, widest, i * (BAR + 4)) for i, entry in enumerate(shown)]
    more = f"<p>and {len(data) - len(shown)} smaller ones</p>" if len(shown) < len(data) else ""
    keys = "".join(key(kind, kind) for kind in KINDS)
    return (
        f'<p class="key">{counted(len(data), "segment")}, the largest {size_text(widest)}:'
        f"{keys}</p>"
        f"{svg.picture(bars, WIDTH, height, 'segments')}{more}"
    )


def totals(stats: dict[str, Any]) -> str:
    in_bytes = ("used", "padding", "cached", "reserved", "limit", "used_peak", "reserved_peak")
    rows = []
    for name, value in stats.items():
        text = "none" if value is None else size_text(value) if name in in_bytes else f"{value:,}"
        rows.append(f'<tr><th>{html.escape(name)}</th><td class="n">{text}</td></tr>')
    return f"<table>{''.join(rows)}</table>"


def page(data: dict[str, Any]) -> str:
    return pages.page(_title(data), _body(data), STYLE)


def box(data: dict[str, Any]) -> str:
    """The page for a notebook."""
    return pages.box(_title(data), more=pages.part(_body(data), STYLE))


def _title(data: dict[str, Any]) -> str:
    return f"Memory of {data['device']}: {data['resource']}"


def _body(data: dict[str, Any]) -> str:
    return (
        f"<h2>Over time</h2>{history(data['history'])}"
        f"<h2>Now</h2>{segments(data['segments'])}"
        f"<h2>Counts</h2>{totals(data['stats'])}"
    )
