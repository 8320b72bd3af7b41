"""Pictures in SVG with the colours of the page: they follow light and dark."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Callable, Iterable, Sequence

Text = Callable[[float], str]


def plain(value: float) -> str:
    return f"{value:.4g}"


def _step(span: float, count: int) -> float:
    raw = span / max(count, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    return next(power * m for m in (1, 2, 5, 10) if power * m >= raw * 0.999)


class Scale:
    """Values from `low` to `high` as places from `begin` to `end`, on a logarithmic scale where
    `log` is asked for and all values are positive."""

    def __init__(
        self, values: Iterable[float], begin: float, end: float, *, log: bool = False
    ) -> None:
        known = list(values) or [0.0, 1.0]
        self.low, self.high = min(known), max(known)
        self.log = log and self.low > 0
        if self.low == self.high:
            width = abs(self.low) * 0.05 or 1.0
            self.low, self.high = self.low - width, self.high + width
        self.begin, self.end = begin, end

    def __call__(self, value: float) -> float:
        if self.log:
            low = math.log(self.low)
            part = (math.log(value) - low) / (math.log(self.high) - low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.begin + part * (self.end - self.begin)

    def ticks(self, count: int = 5) -> list[float]:
        if self.log and self.high / self.low >= 4:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            for factors in ((1, 2, 5), (1, 3), (1,)):
                found = [f * 10.0**p for p in powers for f in factors]
                found = [tick for tick in found if self.low <= tick <= self.high]
                if len(found) <= count + 2:
                    return found
            return found[:: len(found) // count + 1]
        step = _step(self.high - self.low, count)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [tick * step for tick in range(first, last + 1)]


def title(text: str) -> str:
    return f"<title>{html.escape(text)}</title>"


def label(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> str:
    cls = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{cls}>{html.escape(text)}</text>'


def turned(y: float, text: str) -> str:
    """The name of a vertical axis, along the left edge."""
    return (
        f'<text transform="translate(13,{y:.0f}) rotate(-90)" text-anchor="middle" '
        f'class="name">{html.escape(text)}</text>'
    )


def box(
    x: float, y: float, width: float, height: float, kind: str, tip: str = "", fill: str = ""
) -> str:
    inner = title(tip) if tip else ""
    style = f' style="fill:{fill}"' if fill else ""
    return (
        f'<rect x="{x:.2f}" y="{y:.2f}" width="{max(width, 0.4):.2f}" '
        f'height="{max(height, 0.4):.2f}" class="{kind}"{style}>{inner}</rect>'
    )


def dot(x: float, y: float, radius: float, kind: str, tip: str = "") -> str:
    inner = title(tip) if tip else ""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" class="{kind}">{inner}</circle>'


def path(points: Sequence[tuple[float, float]], kind: str) -> str:
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{text}" class="{kind}"/>'


def segment(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def stairs(points: Sequence[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    """Points joined by level lines, as something that holds until it changes; up to `end`."""
    found: list[tuple[float, float]] = []
    for x, y in points:
        if found:
            found.append((x, found[-1][1]))
        found.append((x, y))
    if found:
        found.append((end, found[-1][1]))
    return found


LETTER = 7.0
"""The width of a letter of a label at most: that of DejaVu Sans in the size of the pages."""


def text_width(texts: Iterable[str]) -> float:
    """Room for the longest of the labels."""
    return LETTER * max(map(len, texts), default=0)


class Plot:
    """Axes with room for their labels, around parts that are drawn with the scales `x` and `y`.
    `x_text` and `y_text` write a value of the axis."""

    LEFT, RIGHT, TOP, BOTTOM = 62, 14, 12, 40
    NAME, GAP = 20, 6  # the room of the turned name of the y axis; between a label and its axis

    def __init__(
        self,
        xs: Iterable[float],
        ys: Iterable[float],
        *,
        width: int = 440,
        height: int = 270,
        log_x: bool = False,
        log_y: bool = False,
        x_text: Text = plain,
        y_text: Text = plain,
    ) -> None:
        self.width, self.height = width, height
        self.x_text, self.y_text = x_text, y_text
        self.y = Scale(ys, height - self.BOTTOM, self.TOP, log=log_y)
        labels = text_width(map(y_text, self.y.ticks()))
        self.left = max(self.LEFT, self.NAME + labels + self.GAP)
        self.x = Scale(xs, self.left, width - self.RIGHT, log=log_x)
        # Labels of the x axis stand below the middle of their ticks: the last one needs half.
        right = max(self.RIGHT, text_width(map(x_text, self.x.ticks())) / 2)
        self.right = width - right
        self.x.end = self.right
        self.parts: list[str] = []

    def _x_ticks(self) -> list[tuple[float, str]]:
        """Places and labels along x, as many as stand beside each other."""
        ticks = self.x.ticks()
        texts = [self.x_text(tick) for tick in ticks]
        room = text_width(texts) + self.GAP
        nearest = min((self.x(b) - self.x(a) for a, b in itertools.pairwise(ticks)),
                      default=room)  # fmt: skip
        every = max(1, math.ceil(room / max(nearest, 1e-9)))
        return [(self.x(tick), text) for tick, text in zip(ticks, texts, strict=True)][::every]

    def axes(self, x_name: str, y_name: str) -> None:
        bottom = self.height - self.BOTTOM
        for tick in self.y.ticks():
            y = self.y(tick)
            self.parts.append(segment(self.left, y, self.right, y, "grid"))
            self.parts.append(label(self.left - self.GAP, y + 4, self.y_text(tick), "end"))
        for x, text in self._x_ticks():
            self.parts.append(segment(x, bottom, x, bottom + 4, "axis"))
            self.parts.append(label(x, bottom + 17, text, "middle"))
        self.parts.append(segment(self.left, bottom, self.right, bottom, "axis"))
        self._name_below(x_name)
        self.parts.append(turned((self.TOP + bottom) / 2, y_name))

    def columns(self, x_name: str) -> None:
        """The axis below alone, for rows that are no values."""
        bottom = self.height - self.BOTTOM
        for x, text in self._x_ticks():
            self.parts.append(segment(x, self.TOP, x, bottom, "grid"))
            self.parts.append(label(x, bottom + 17, text, "middle"))
        self._name_below(x_name)

    def _name_below(self, name: str) -> None:
        middle = (self.left + self.right) / 2
        self.parts.append(label(middle, self.height - 6, name, "middle", "name"))

    def svg(self, says: str) -> str:
        return picture(self.parts, self.width, self.height, says)


def picture(parts: Iterable[str], width: float, height: float, says: str, kind: str = "") -> str:
    """`says` is read to who does not see the picture."""
    cls = f' class="{kind}"' if kind else ""
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{html.escape(says, quote=True)}"{cls}>{"".join(parts)}</svg>'
    )


# Viridis at even places (matplotlib, CC0), dark to light.
_VIRIDIS = (
    *((68, 1, 84), (71, 44, 122), (59, 81, 139), (44, 113, 142), (33, 144, 141)),
    *((39, 173, 129), (92, 200, 99), (170, 220, 50), (253, 231, 37)),
)


def shade(part: float) -> tuple[str, str]:
    """The colour of a place from 0 to 1, and black or white, whichever reads better on it."""
    place = min(max(part, 0.0), 1.0) * (len(_VIRIDIS) - 1)
    low = min(int(place), len(_VIRIDIS) - 2)
    mixed = [
        a + (b - a) * (place - low) for a, b in zip(_VIRIDIS[low], _VIRIDIS[low + 1], strict=True)
    ]
    channels = [c / 255 for c in mixed]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#" + "".join(f"{round(c):02x}" for c in mixed), "#000" if light > 0.179 else "#fff"
