"""Draws the modules and their includes from the sources: docs/pictures/architecture.svg.

python scripts/architecture_picture.py [--check]
"""

from __future__ import annotations

import html
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "pictures" / "architecture.svg"
MODULES = {
    "runtime/base": "errors, logging, environment, hashing",
    "runtime/driver": "the seam: tables of driver and NVRTC functions",
    "runtime/sim": "the simulated device",
    "runtime/core": "devices, streams, kernels, launches",
    "runtime/memory": "pool, buffers, copies",
    "runtime/array": "strided arrays, DLPack",
    "runtime/schedule": "tasks, classes, shares of a device",
    "jit": "text to kernel; caches",
    "worker": "processes that compile",
    "worker/device": "processes that hold a device",
    "tune": "spaces, searches, sessions, judge",
    "kernels_src": "kernels of our own",
    "engine": "steps of language models",
    "bindings": "Python, C++ and libcuda",
}
# The modules of each row from left to right, so ordered that no arrow crosses a box.
COLUMNS = (
    ("runtime/sim", "worker/device", "tune"),
    ("runtime/memory", "runtime/array"),
    ("runtime/schedule",),
    ("runtime/base", "runtime/driver", "runtime/core", "jit", "worker", "bindings"),
    ("kernels_src", "engine"),
)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SUFFIXES = {".h", ".cpp", ".inc", ".def"}
WIDTH, BOX, ROW, GAP = 960, 210, 58, 46
STYLE = """
svg { font: 13px system-ui, sans-serif; }
rect { fill: #f6f8fa; stroke: #57606a; } text { fill: #1f2328; } .what { fill: #59636e; }
path { fill: none; stroke: #8c959f; } marker path { fill: #8c959f; stroke: none; }
@media (prefers-color-scheme: dark) {
  rect { fill: #161b22; stroke: #8b949e; } text { fill: #e6edf3; } .what { fill: #9da7b3; }
  path { stroke: #6e7681; } marker path { fill: #6e7681; }
}
"""


def find_module(path: str) -> str | None:
    """The innermost module of a file."""
    found = [name for name in MODULES if path.startswith(name + "/")]
    return max(found, key=len, default=None)


def included() -> dict[str, set[str]]:
    """The direct includes of each module."""
    found: dict[str, set[str]] = {name: set() for name in MODULES}
    for top in sorted({name.split("/")[0] for name in MODULES}):
        for path in (ROOT / top).rglob("*"):
            home = find_module(path.relative_to(ROOT).as_posix())
            if home is None or path.suffix not in SUFFIXES:
                continue
            for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
                other = find_module(f"runtime/{name}") or find_module(name)
                if other is not None and other != home:
                    found[home].add(other)
    return found


def below(name: str, direct: dict[str, set[str]]) -> set[str]:
    """The direct and indirect includes of a module."""
    return direct[name].union(*(below(each, direct) for each in direct[name]), set())


def reduced(direct: dict[str, set[str]]) -> dict[str, set[str]]:
    """The includes without those that another included module already brings."""
    through = {
        name: set().union(*(below(each, direct) for each in direct[name]), set()) for name in direct
    }
    return {name: direct[name] - through[name] for name in direct}


def layers(direct: dict[str, set[str]]) -> list[list[str]]:
    """The modules by the length of their longest path to the lowest layer, the lowest first."""
    depth: dict[str, int] = {}

    def layer(name: str) -> int:
        if name not in depth:
            depth[name] = 1 + max((layer(each) for each in direct[name]), default=-1)
        return depth[name]

    rows: list[list[str]] = [[] for _ in range(1 + max(map(layer, MODULES)))]
    for name in MODULES:
        rows[depth[name]].append(name)
    return rows


def column(name: str) -> int:
    return next(place for place, names in enumerate(COLUMNS) if name in names)


def picture() -> str:
    direct = included()
    rows = layers(direct)
    height = len(rows) * (ROW + GAP) - GAP + 20
    places: dict[str, tuple[float, float]] = {}
    for level, names in enumerate(rows):
        y = height - 10 - ROW - level * (ROW + GAP)
        for name in names:
            places[name] = WIDTH * (column(name) + 0.5) / len(COLUMNS), y
    arrows = [
        arrow(places[name], places[other])
        for name, others in reduced(direct).items()
        for other in sorted(others)
    ]
    boxes = [box(name, *place) for name, place in places.items()]
    marker = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>\n'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}">\n'
        f"<style>{STYLE}</style>\n{marker}{''.join(arrows)}{''.join(boxes)}</svg>\n"
    )


def arrow(begin: tuple[float, float], end: tuple[float, float]) -> str:
    """A path from the bottom of a box to the top of a lower one; it turns in the last gap."""
    (x1, y1), (x2, y2) = (begin[0], begin[1] + ROW), end
    middle = y2 - GAP / 2
    way = f"M{x1:.0f} {y1:.0f}V{y2 - GAP:.0f}C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} "
    way += f"{x2:.0f} {y2:.0f}"
    return f'<path d="{way}" marker-end="url(#tip)"/>\n'


def box(name: str, x: float, y: float) -> str:
    left = x - BOX / 2
    lines = [f'<rect x="{left:.0f}" y="{y:.0f}" width="{BOX}" height="{ROW}" rx="5"/>']
    words, line = MODULES[name].split(), ""
    texts: list[str] = []
    for word in words:
        if len(line) + len(word) > 30:
            texts.append(line)
            line = ""
        line = f"{line} {word}".strip()
    texts.append(line)
    middle = y + (25 if len(texts) == 1 else 18)
    lines.append(
        f'<text x="{x:.0f}" y="{middle:.0f}" text-anchor="middle" font-weight="600">{name}</text>'
    )
    for number, text in enumerate(texts):
        lines.append(
            f'<text class="what" x="{x:.0f}" y="{middle + 17 + 15 * number:.0f}" '
            f'text-anchor="middle" font-size="12">{html.escape(text)}</text>'
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    made = picture()
    if "--check" in sys.argv:
        return 0 if PICTURE.exists() and PICTURE.read_text() == made else 1
    PICTURE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
