"""A snapshot of device memory as one HTML page with SVG pictures, which loads nothing."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any

from kernwright._support.words import counted

WIDTH, HEIGHT = 960, 220
BAR = 16
MOST_SEGMENTS = 400
COLOURS = {"used": "#2f6f9f", "padding": "#8fb7d4", "free": "#e4e4e4", "held": "#c98a2b"}
STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 62em; color: #222; }
table { border-collapse: collapse; } td, th { padding: .1em .8em .1em 0; text-align: left; }
td.n { text-align: right; font-variant-numeric: tabular-nums; } svg { display: block; }
.key span { display: inline-block; width: .9em; height: .9em; margin: 0 .3em 0 1em; }
"""


def size(count: float) -> str:
    """512 B, 1.5 MiB"""
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
    unit = 0
    while count >= 1023.95 and unit + 1 < len(units):
        count /= 1024
        unit += 1
    return f"{count:.1f} {units[unit]}" if unit else f"{int(count)} B"


def rectangle(x: float, y: float, width: float, height: float, colour: str, title: str) -> str:
    return (
        f'<rect x="{x:.2f}" y="{y:.2f}" width="{max(width, 0.3):.2f}" height="{height}" '
        f'fill="{colour}"><title>{html.escape(title)}</title></rect>'
    )


def line(points: Iterable[tuple[float, float]], colour: str, fill: str = "none") -> str:
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    shape = "polygon" if fill != "none" else "polyline"
    return f'<{shape} points="{text}" fill="{fill}" stroke="{colour}" stroke-width="1.2"/>'


def fragmentation(sample: dict[str, Any]) -> float:
    """How much of the free memory is not in its largest piece: 0 for none, near 1 for dust."""
    free = sample["reserved"] - sample["used"]
    return max(0.0, 1 - sample["largest_free"] / free) if free > 0 else 0.0


def history(samples: list[dict[str, Any]]) -> str:
    if len(samples) < 2:
        return "<p>No history.</p>"
    last = max(samples[-1]["operation"], 1)
    top = max(max(s["reserved"] for s in samples), 1)

    def curve(key: str) -> list[tuple[float, float]]:
        return [(WIDTH * s["operation"] / last, HEIGHT * (1 - s[key] / top)) for s in samples]

    def area(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(points[0][0], HEIGHT), *points, (points[-1][0], HEIGHT)]

    broken = [
        (WIDTH * s["operation"] / last, HEIGHT * (1 - fragmentation(s))) for s in samples
    ]  # fmt: skip
    seconds = samples[-1]["seconds"] - samples[0]["seconds"]
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" '
        f'aria-label="use over time">',
        line(area(curve("reserved")), "#999", COLOURS["free"]),
        line(area(curve("used")), COLOURS["used"], COLOURS["padding"]),
        line(broken, "#b03030"),
        "</svg>",
    ]
    key = (
        f'<p class="key"><span style="background:{COLOURS["padding"]}"></span>used'
        f'<span style="background:{COLOURS["free"]}"></span>reserved (top: {size(top)})'
        f'<span style="background:#b03030"></span>fragmentation of free memory (top: 1) over '
        f"{last:,} operations in {seconds:.1f} s</p>"
    )
    return "".join(parts) + key


def segment(data: dict[str, Any], widest: int, y: float) -> str:
    scale = WIDTH / widest
    parts = []
    for block in data["blocks"]:
        x, width = block["offset"] * scale, block["bytes"] * scale
        where = f"{data['address'] + block['offset']:#x}, {size(block['bytes'])}"
        if block["state"] == "free":
            whose = f"of stream {block['stream']}" if block["stream"] else "for every stream"
            parts.append(rectangle(x, y, width, BAR, COLOURS["free"], f"free {whose}: {where}"))
            continue
        title = f"{block['state']}: {where}, from {block['place'] or 'an unknown place'}"
        parts.append(rectangle(x, y, width, BAR, COLOURS["padding"], title))
        asked = block["requested"] * scale
        parts.append(rectangle(x, y, asked, BAR, COLOURS[block["state"]], title))
    return "".join(parts)


def segments(data: list[dict[str, Any]]) -> str:
    if not data:
        return "<p>No memory is reserved.</p>"
    shown = sorted(data, key=lambda s: -s["bytes"])[:MOST_SEGMENTS]
    widest = shown[0]["bytes"]
    height = len(shown) * (BAR + 4)
    bars = [segment(entry, widest, i * (BAR + 4)) for i, entry in enumerate(shown)]
    more = f"<p>and {len(data) - len(shown)} smaller ones</p>" if len(shown) < len(data) else ""
    key = "".join(
        f'<span style="background:{colour}"></span>{name}' for name, colour in COLOURS.items()
    )
    return (
        f'<p class="key">{counted(len(data), "segment")}, the largest {size(widest)}:{key}</p>'
        f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img" aria-label="segments">'
        + "".join(bars)
        + f"</svg>{more}"
    )


def totals(stats: dict[str, Any]) -> str:
    in_bytes = ("used", "padding", "cached", "reserved", "limit", "used_peak", "reserved_peak")
    rows = []
    for name, value in stats.items():
        text = "none" if value is None else size(value) if name in in_bytes else f"{value:,}"
        rows.append(f'<tr><th>{html.escape(name)}</th><td class="n">{text}</td></tr>')
    return f"<table>{''.join(rows)}</table>"


def page(data: dict[str, Any]) -> str:
    title = html.escape(f"Memory of {data['device']}: {data['resource']}")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{STYLE}</style></head><body><h1>{title}</h1>"
        f"<h2>Over time</h2>{history(data['history'])}"
        f"<h2>Now</h2>{segments(data['segments'])}"
        f"<h2>Counts</h2>{totals(data['stats'])}</body></html>\n"
    )
