"""Pictures in SVG with the colours of the page: they follow light and dark."""

from __future__ import annotations

import html
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


class Plot:
    """Axes with room for their labels, around parts that are drawn with the scales `x` and `y`."""

    LEFT, RIGHT, TOP, BOTTOM = 62, 14, 12, 40

    def __init__(
        self,
        xs: Iterable[float],
        ys: Iterable[float],
        *,
        width: int = 440,
        height: int = 270,
        log_x: bool = False,
        log_y: bool = False,
    ) -> None:
        self.width, self.height = width, height
        self.x = Scale(xs, self.LEFT, width - self.RIGHT, log=log_x)
        self.y = Scale(ys, height - self.BOTTOM, self.TOP, log=log_y)
        self.parts: list[str] = []

    def axes(self, x_name: str, y_name: str, x_text: Text = plain, y_text: Text = plain) -> None:
        bottom = self.height - self.BOTTOM
        right = self.width - self.RIGHT
        for tick in self.y.ticks():
            y = self.y(tick)
            self.parts.append(segment(self.LEFT, y, right, y, "grid"))
            self.parts.append(label(self.LEFT - 6, y + 4, y_text(tick), "end"))
        for tick in self.x.ticks():
            x = self.x(tick)
            self.parts.append(segment(x, bottom, x, bottom + 4, "axis"))
            self.parts.append(label(x, bottom + 17, x_text(tick), "middle"))
        self.parts.append(segment(self.LEFT, bottom, right, bottom, "axis"))
        self.parts.append(label((self.LEFT + right) / 2, self.height - 6, x_name, "middle", "name"))
        middle = (self.TOP + bottom) / 2
        self.parts.append(
            f'<text transform="translate(13,{middle:.0f}) rotate(-90)" text-anchor="middle" '
            f'class="name">{html.escape(y_name)}</text>'
        )

    def columns(self, x_name: str, x_text: Text = plain) -> None:
        """The axis below alone, for rows that are no values."""
        bottom = self.height - self.BOTTOM
        for tick in self.x.ticks():
            x = self.x(tick)
            self.parts.append(segment(x, self.TOP, x, bottom, "grid"))
            self.parts.append(label(x, bottom + 17, x_text(tick), "middle"))
        middle = (self.LEFT + self.width - self.RIGHT) / 2
        self.parts.append(label(middle, self.height - 6, x_name, "middle", "name"))

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
