"""Pages that reports are written as: one file each, nothing loaded from elsewhere."""

from __future__ import annotations

import html

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
p { margin: .2em 0; } pre { background: var(--panel); padding: .6em; overflow-x: auto; }
.number { color: var(--soft); }
"""


def page(title: str, body: str, style: str = "") -> str:
    """A page of that title (plain text) and body (HTML); `style` comes after the common one."""
    text = html.escape(title)
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset=utf-8>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text}</title>\n<style>{_STYLE}{style.lstrip()}</style>\n"
        f"<h1>{text}</h1>\n{body}\n</html>\n"
    )
