"""Pages that reports are written as, and boxes of notebooks: nothing is loaded from elsewhere."""

from __future__ import annotations

import html
import zlib
from collections.abc import Iterable, Mapping, Sequence

# Lines of a source: one that is too long goes on below its first character.
_SOURCE_STYLE = """
.row { display: block; white-space: pre; } .row .code { display: inline-block;
vertical-align: top; max-width: calc(100% - var(--at) - 1ch); white-space: pre-wrap;
overflow-wrap: anywhere; }
"""
_MOST_INDENT = 24
"""Characters: of deeper lines the rest counts as text, so that narrow screens have room for it."""

# Each pair of text and ground has a contrast of at least 4.5 : 1, in light and in dark.
_STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --line: #d1d9e0;
--paper: #ffffff; --panel: #f6f8fa; --accent: #0860ca; --good: #1a7f37; --bad: #c21c24;
--warm: #a04100; --at: #fbd9d6; --other: #fdebc8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9da7b3; --line: #3d444d;
--paper: #0d1117; --panel: #161b22; --accent: #58a6ff; --good: #3fb950; --bad: #ff7b72;
--warm: #f0883e; --at: #5a1e1c; --other: #4d3800; } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; padding: 0 1em; max-width: 70em;
color: var(--ink); background: var(--paper); }
h1, h2 { overflow-wrap: anywhere; } .number { color: var(--soft); }
p { margin: .2em 0; overflow-wrap: anywhere; }
pre { background: var(--panel); padding: .6em; overflow-x: auto;
white-space: pre-wrap; overflow-wrap: anywhere; }
"""


def page(title: str, body: str, style: str = "") -> str:
    """A page of that title (plain text) and body (HTML); `style` comes after the common one."""
    text = html.escape(title)
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset=utf-8>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text}</title>\n<style>{_STYLE}{_SOURCE_STYLE}{style.lstrip()}</style>\n"
        f"<h1>{text}</h1>\n{body}\n</html>\n"
    )


# A box of a notebook takes the notebook's colours of text and ground, light or dark: its own ones
# are translucent.
_BOX = (
    "font-family:system-ui,sans-serif;font-size:13px;line-height:1.45;border:1px solid #8885;"
    "border-radius:6px;padding:.6em .9em;display:inline-block;max-width:min(60em,100%);"
    "box-sizing:border-box;overflow-x:auto"
)
_BOX_STYLE = """
--good: #2da44e; --bad: #e5534b; --warm: #d97a20; --accent: #2f7ed8; --ink: #888; --soft: #888;
--line: #8885; --panel: #8881; --at: #e5534b44; --other: #d9902044;
pre { padding: .4em .6em; overflow-x: auto; background: var(--panel); }
p { margin: .2em 0; } .number { opacity: .6; } h2 { font-size: 1em; }
table { border-collapse: collapse; margin: .3em 0; }
"""


def box(title: str, rows: Mapping[str, object] | None = None, more: str = "") -> str:
    """What a notebook shows of an object: a title, names with values (plain text; None and empty
    ones are left out), and HTML below."""
    cells = "".join(
        f"<tr><th style='text-align:left;font-weight:500;opacity:.7;padding-right:1.2em'>"
        f"{html.escape(name)}</th><td style='text-align:left'>{html.escape(str(value))}</td></tr>"
        for name, value in (rows or {}).items()
        if value not in (None, "")
    )
    figures = f"<table style='margin:.3em 0'>{cells}</table>" if cells or not more else ""
    return f"<div style='{_BOX}'><b>{html.escape(title)}</b>{figures}{more}</div>"


def part(body: str, style: str = "") -> str:
    """The body of a page with its style, to be shown within a box: other boxes do not see it."""
    name = f"kernwright-{zlib.crc32(style.encode()):08x}"
    whole = _BOX_STYLE + _SOURCE_STYLE + style
    return f"<div class={name}><style>.{name} {{{whole}}}</style>{body}</div>"


def source_row(line: str, number: str = "", kind: str = "") -> str:
    """A line of a source within <pre>, behind its number. `kind` is one more class for its style.
    The number, the indentation and the first character stay together."""
    text = line.expandtabs()
    indent = min(len(text) - len(text.lstrip()), _MOST_INDENT)
    front = f"<span class=number>{html.escape(number)}</span>  " if number else ""
    at = indent + (len(number) + 2 if number else 0)
    return (
        f"<span class='row{kind and ' ' + kind}' style='--at: {at}ch'>{front}{' ' * indent}"
        f"<span class=code>{html.escape(text[indent:])}</span>\n</span>"
    )


def table(header: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """A table of plain text: the first `texts` columns to the left, numbers to the right."""

    def line(tag: str, cells: Sequence[str]) -> str:
        places = ["left"] * texts + ["right"] * (len(cells) - texts)
        return "".join(
            f"<{tag} style='text-align:{place};padding:0 .7em 0 0'>{html.escape(cell)}</{tag}>"
            for place, cell in zip(places, cells, strict=True)
        )

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f"<table style='margin:.3em 0'><tr>{line('th', header)}</tr>{body}</table>"
