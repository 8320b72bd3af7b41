"""Writes docs/environment.md from the library's table of variables: environment_page.py [PATH]."""

import pathlib
import sys

from kernwright import _core

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs" / "environment.md"
INTRODUCTION = """\
# Environment variables

Written by `scripts/environment_page.py` from the library's own table. An invalid value raises an
error with the variable and the allowed values. A misspelt name is warned of. `kernwright doctor`
shows the variables that are set.

| variable | default | values | meaning |
|---|---|---|---|
"""


def page() -> str:
    rows = []
    for row in _core.environment_table():
        words = ", ".join(f"`{word}`" for word in row["choices"].split("|") if word)
        default = f"`{row['default']}`" if row["default"] else ""
        rows.append(f"| `{row['name']}` | {default} | {words} | {row['meaning']} |\n")
    return INTRODUCTION + "".join(rows)


if __name__ == "__main__":
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    path.write_text(page())
