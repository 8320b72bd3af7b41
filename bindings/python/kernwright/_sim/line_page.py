"""The page of a line profile: the source, shaded by cost, with counts and advice at its lines."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

from kernwright._support import html as _html

Column = tuple[str, str]
"""Its name, and what it says."""


class Row(NamedTuple):
    """A line of a source; `cells` are empty where it was not executed."""

    number: int
    source: str
    cells: list[str]
    share: float
    advice: str


# On narrow screens the counts of a line stand below its source, each with its name.
_STYLE = """
h2 { font-size: 1.05em; margin: 1.6em 0 .3em; }
table.lines { border-collapse: collapse; width: 100%; font: 13px/1.35 ui-monospace, monospace; }
.lines th, .lines td { text-align: right; padding: 0 .5em; vertical-align: top; }
.lines .source { text-align: left; white-space: pre-wrap; overflow-wrap: anywhere; width: 99%; }
.lines tr { background: color-mix(in srgb, var(--bad) var(--heat, 0%), transparent); }
.lines .hot .number { color: inherit; }
.lines .advice td { text-align: left; font-family: system-ui, sans-serif; padding-bottom: .4em; }
@media (max-width: 50em) {
table.lines, .lines tbody { display: block; } .lines .head { display: none; }
.lines tr { display: flex; flex-wrap: wrap; } .lines .source { flex: 1 0 calc(100% - 6em); }
.lines .number { min-width: 3em; } .lines .none { display: none; }
.lines .advice td:last-child { flex: 1; }
.lines td[data-name] { padding: 0 0 0 .9em; }
.lines td[data-name]::before { content: attr(data-name) " "; opacity: .75; }
}
"""
_DARKEST = 40
"""Per cent of colour in the worst line: its text keeps a contrast of 4.5."""


def page(
    title: str, columns: list[Column], note: str, listings: list[tuple[str, list[Row]]]
) -> str:
    return _html.page(title, _body(columns, note, listings), _STYLE)


def box(title: str, columns: list[Column], note: str, listings: list[tuple[str, list[Row]]]) -> str:
    """The same for a notebook."""
    return _html.box(title, more=_html.part(_body(columns, note, listings), _STYLE))


def _body(columns: Sequence[Column], note: str, listings: Sequence[tuple[str, list[Row]]]) -> str:
    if not listings:
        return ""
    worst = max((row.share for _, rows in listings for row in rows), default=0.0)
    parts = [_explanation(columns, note)]
    for title, rows in listings:
        names = "".join(
            f"<th title='{html.escape(meaning)}'>{html.escape(name)}" for name, meaning in columns
        )
        parts.append(f"<h2>{html.escape(title)}</h2>\n<table class=lines>\n")
        parts.append(f"<tr class=head><th>line<th class=source>source{names}\n")
        parts += [_row(columns, row, row.share / worst if worst else 0.0) for row in rows]
        parts.append("</table>\n")
    return "".join(parts)


def _explanation(columns: Sequence[Column], note: str) -> str:
    told = "".join(
        f"<li><b>{html.escape(name)}</b>: {html.escape(meaning)}</li>" for name, meaning in columns
    )
    more = f"<p>{html.escape(note)}.</p>\n" if note else ""
    return (
        "<p>The shade of a line is its cost. Bank conflicts and contention make more passes over "
        "memory, scattered addresses touch more sectors, and where lanes diverge, a warp executes "
        "more instructions. Caches and waiting are not in it.</p>\n"
        f"{more}<details><summary>What the columns say</summary><ul>{told}</ul></details>\n"
    )


def _row(columns: Sequence[Column], row: Row, heat: float) -> str:
    shade = f" class=hot style='--heat: {heat * _DARKEST:.1f}%'" if heat >= 0.005 else ""
    cells = "".join(
        f"<td{' class=none' if cell in ('', '-') else ''} data-name='{html.escape(name)}'>{cell}"
        for (name, _), cell in zip(columns, row.cells, strict=True)
    )
    text = (
        f"<tr{shade}><td class=number>{row.number}<td class=source>{html.escape(row.source)}\n"
        f"{cells}\n"
    )
    if row.advice:
        tone = shade.replace("class=hot", "class='hot advice'") or " class=advice"
        text += (
            f"<tr{tone}><td class=number><td colspan={len(columns) + 1}>{html.escape(row.advice)}\n"
        )
    return text
