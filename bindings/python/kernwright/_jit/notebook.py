"""The string kernels of a Jupyter notebook."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from kernwright.errors import Diagnostic

if TYPE_CHECKING:
    from kernwright._jit.options import ProgramOptions

# Cells that another compiler's extension takes as CUDA C++.
_CUDA_CELLS = ("%%cu", "%%cuda", "%%nvcc")


def lint(
    text: str,
    path: str,
    options: ProgramOptions,
    check_text: Callable[[str, str, int, ProgramOptions], list[Diagnostic]],
    lint_python: Callable[[str, str, ProgramOptions], list[Diagnostic]],
) -> list[Diagnostic]:
    """Findings of all cells; the file is named "path:cell 3", and lines count within the cell.

    Cells count from 1. A name that one cell assigns is known in the others. `check_text` finds what
    is wrong in CUDA C++, `lint_python` in Python.
    """
    try:
        cells = list(_code_cells(json.loads(text)))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        message = f"not a notebook: {type(error).__name__}: {error}"
        return [Diagnostic("error", message, path, 0, 0, "", "")]
    found: list[Diagnostic] = []
    lines: list[tuple[str, int]] = []  # of the joined text: cell and line within it
    joined: list[str] = []
    for number, cell in cells:
        name = f"{path}:cell {number}"
        magic, _, rest = cell.partition("\n")
        if magic.split(" ")[0] in _CUDA_CELLS:
            if rest.strip():
                found += check_text(rest, name, 2, options)
            continue
        plain = _without_magics(cell)
        try:
            ast.parse(plain)
        except SyntaxError as error:
            message = f"not Python: {error.msg}"
            place = error.lineno or 0, error.offset or 0
            found.append(Diagnostic("error", message, name, *place, "", ""))
            continue
        rows = plain.split("\n")
        joined += rows
        lines += [(name, i + 1) for i in range(len(rows))]
    for diagnostic in lint_python("\n".join(joined), path, options):
        if diagnostic.file == path and 0 < diagnostic.line <= len(lines):
            name, line = lines[diagnostic.line - 1]
            diagnostic = diagnostic._replace(file=name, line=line)
        found.append(diagnostic)
    return found


def _code_cells(notebook: Any) -> Iterator[tuple[int, str]]:
    for number, cell in enumerate(notebook["cells"], 1):
        if cell["cell_type"] == "code":
            source = cell["source"]
            yield number, source if isinstance(source, str) else "".join(source)


def _without_magics(cell: str) -> str:
    """Blank lines in place of what only IPython reads: %time, !ls, and whole cells of %%bash."""
    if cell.startswith("%%") and not cell.startswith(("%%time", "%%capture", "%%prun")):
        return ""
    rows = []
    in_text = _lines_within_strings(cell)
    for i, row in enumerate(cell.split("\n")):
        is_magic = row.lstrip().startswith(("%", "!", "?")) and i not in in_text
        indent = row[: len(row) - len(row.lstrip())]
        rows.append(f"{indent}pass" if is_magic else row)
    return "\n".join(rows)


def _lines_within_strings(cell: str) -> set[int]:
    """Lines, from 0, that begin within a string of three quotes."""
    inside: set[int] = set()
    quote = ""
    for i, row in enumerate(cell.split("\n")):
        if quote:
            inside.add(i)
        rest = row
        while rest:
            if quote:
                _, found, rest = rest.partition(quote)
                quote = "" if found else quote
                continue
            opened = [q for q in ('"""', "'''") if q in rest]
            if not opened:
                break
            quote = min(opened, key=rest.index)
            rest = rest.partition(quote)[2]
    return inside
