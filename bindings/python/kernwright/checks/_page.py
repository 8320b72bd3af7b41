"""The page of a report of kw.checks: each finding beside the source around its lines."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kernwright import _core
from kernwright._sim import watch as _watch
from kernwright._support import html as _html
from kernwright._support.words import counted

if TYPE_CHECKING:
    from kernwright.checks import Finding, Other

_STYLE = """
h2 { font-size: 1.05em; margin: 1.6em 0 .3em; } .kind { background: #b3261e; color: #fff;
padding: .1em .5em; border-radius: .3em; margin-right: .5em; } .hint { color: var(--good); }
.at { background: var(--at); } .other { background: var(--other); }
"""
_AROUND = 3

Texts = tuple[str | None, str | None]
"""What the lines of a finding and of its other access count in; None for a file on the disk."""


def _lines(file: str, text: str | None, first_line: int) -> tuple[list[str], int]:
    """The lines of a source, and the number of the first of them."""
    if text is not None:
        return _watch.source_lines(text), first_line
    return _watch.shown_lines(file, 1), 1


def _excerpt(lines: list[str], first: int, marks: dict[int, str]) -> str:
    """The lines around those that `marks` gives a style, by number; empty where there are none."""
    end = first + len(lines)
    wanted = {n + d for n in marks if first <= n < end for d in range(-_AROUND, _AROUND + 1)}
    rows: list[str] = []
    last = 0
    for number in sorted(n for n in wanted if first <= n < end):
        if last and number > last + 1:
            rows.append(_html.source_row("", "  ..."))
        last = number
        rows.append(_html.source_row(lines[number - first], f"{number:5}", marks.get(number, "")))
    return f"<pre>{''.join(rows)}</pre>\n" if rows else ""


def _excerpts(finding: Finding, texts: Texts) -> str:
    other = finding.other
    first = finding.file_line - finding.line + 1
    marks = {finding.file_line: "at"}
    if other is None or not other.line:
        return _excerpt(*_lines(finding.file, texts[0], first), marks)
    if other.file == finding.file:
        marks.setdefault(other.file_line, "other")
        return _excerpt(*_lines(finding.file, texts[0], first), marks)
    there = other.file_line - other.line + 1
    return _excerpt(*_lines(finding.file, texts[0], first), marks) + _excerpt(
        *_lines(other.file, texts[1], there), {other.file_line: "other"}
    )


def _place(of: Finding | Other) -> str:
    """Without the line of the kernel's text, which says little beside an excerpt."""
    if not of.line:
        return "a place that is not known"
    return f"{of.file}:{of.file_line}" if of.file else f"line {of.line}"


def _access(of: Finding | Other) -> str:
    who = f"block {of.block}, thread {of.thread}" if of.block else "one of several threads"
    return html.escape(f"{_place(of)}, {who}: {of.what} {of.value}".strip(" :"))


def _section(finding: Finding, texts: Texts) -> str:
    kernel = html.escape(_core._readable_name(finding.kernel))
    parts = [
        f"<h2><span class=kind>{finding.kind}</span>{html.escape(finding.message)}</h2>",
        f"<p>{kernel}, {_access(finding)}</p>",
    ]
    if finding.other is not None:
        parts.append(f"<p>{_access(finding.other)}</p>")
    if finding.allocation:
        parts.append(f"<p>{html.escape(finding.allocation)}</p>")
    if finding.details:
        parts.append(f"<pre>{html.escape(finding.details)}</pre>")
    if finding.count > 1:
        parts.append(f"<p>{finding.count} times</p>")
    if finding.hint:
        parts.append(f"<p class=hint>{html.escape(finding.hint)}</p>")
    return "\n".join(parts) + "\n" + _excerpts(finding, texts)


def page(findings: Sequence[Finding], texts: Iterable[Texts], dropped: int) -> str:
    """`texts` for each finding; `dropped` says how often something else was found."""
    return _html.page(_title(findings), _body(findings, texts, dropped), _STYLE)


def box(findings: Sequence[Finding], texts: Iterable[Texts], dropped: int) -> str:
    """The same for a notebook."""
    body = _html.part(_body(findings, texts, dropped), _STYLE)
    return _html.box(_title(findings), more=body if findings else "")


def _title(findings: Sequence[Finding]) -> str:
    return counted(len(findings), "finding")


def _body(findings: Sequence[Finding], texts: Iterable[Texts], dropped: int) -> str:
    sections = [_section(*pair) for pair in zip(findings, texts, strict=False)]
    if dropped:
        sections.insert(
            0,
            f"<p>{dropped} more times something was found at other places, beyond the limit of "
            "the list: raise it to see them.</p>",
        )
    return "\n".join(sections)
