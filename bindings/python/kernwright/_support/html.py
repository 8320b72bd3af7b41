"""Pages that reports are written as: one file each, nothing loaded from elsewhere."""

from __future__ import annotations

import html

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 70em; color: #222; }
p { margin: .2em 0; } pre { background: #f6f6f4; padding: .6em; overflow-x: auto; }
.number { color: #999; }
"""


def page(title: str, body: str, style: str = "") -> str:
    """A page of that title (plain text) and body (HTML); `style` comes after the common one."""
    text = html.escape(title)
    return (
        f"<!doctype html>\n<meta charset=utf-8>\n<title>{text}</title>\n"
        f"<style>{_STYLE}{style.lstrip()}</style>\n<h1>{text}</h1>\n{body}\n"
    )
