"""lint(): the compiler's messages about a source, with no device and no code made."""

from __future__ import annotations

import ast
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kernwright import _core
from kernwright._jit import notebook as _notebook
from kernwright._jit.literals import Literal, find_literals
from kernwright._jit.options import ProgramOptions, make_options
from kernwright._jit.source import Located, locate
from kernwright._support.progress import Progress
from kernwright.errors import Diagnostic, InvalidArgument


def lint(
    source: str | os.PathLike[str],
    *,
    options: ProgramOptions | None = None,
    **option_fields: Any,
) -> list[Diagnostic]:
    """The compiler's findings about a source: errors and warnings, at their lines, with hints.

    Takes what kernel() takes. A syntax-only pass: templates are not instantiated, no code is made,
    and it needs no device.

    >>> [found] = kw.lint("__global__ void f(float* x) { int unused; x[0] = 1; }")
    >>> found.line, found.message
    (1, 'variable "unused" was declared but never referenced')
    """
    located = locate(source)
    return _check(located, make_options(options, option_fields))


def lint_file(path: str, options: ProgramOptions) -> list[Diagnostic]:
    """The same for a file: the string kernels of a .py file or a notebook, each with the options of
    the call that compiles it; any other file is CUDA C++."""
    located = locate(_Path(path))
    if path.endswith(".ipynb"):
        return _notebook.lint(located.text, path, options, check_text, lint_python)
    if path.endswith((".py", ".pyi")):
        return lint_python(located.text, path, options)
    return _check(located, options)


def lint_python(text: str, path: str, options: ProgramOptions) -> list[Diagnostic]:
    """The string kernels of a Python text from `path`."""
    try:
        literals = find_literals(text, path)
    except SyntaxError as error:
        return [_message("error", f"not Python: {error.msg}", path, error.lineno, error.offset)]
    found: list[Diagnostic] = []
    for literal in literals:
        found += _check_literal(literal, path, options)
    return found


def lint_text(text: str, name: str, options: ProgramOptions) -> list[Diagnostic]:
    """A text without a file, as the suffix of `name` says; without one Python where it is that."""
    text = text.removeprefix("\ufeff")
    if name.endswith(".ipynb"):
        return _notebook.lint(text, name, options, check_text, lint_python)
    if name.endswith((".py", ".pyi")) or ("." not in name and _is_python(text)):
        return lint_python(text, name, options)
    return check_text(text, name, 1, options)


def check_text(text: str, name: str, first_line: int, options: ProgramOptions) -> list[Diagnostic]:
    """CUDA C++ from the given line of `name` on."""
    return _check(Located(text, name, first_line, ""), options)


def _is_python(text: str) -> bool:
    try:
        compile(text, "<stdin>", "exec", ast.PyCF_ONLY_AST)
    except (SyntaxError, ValueError):
        return False
    return True


def files_below(folder: str) -> list[str]:
    """The .cu, .py and .ipynb files to check in a folder, in order; hidden folders, caches and
    virtual environments are left out."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith((".", "__pycache__", "node_modules"))
            and not os.path.exists(os.path.join(place, name, "pyvenv.cfg"))
        )
        found += [
            os.path.join(place, name)
            for name in sorted(files)
            if name.endswith((".cu", ".py", ".ipynb")) and not name.startswith(".")
        ]
    return found


def lint_files(paths: list[str], options: ProgramOptions) -> list[Diagnostic]:
    """All files, as many at once as there are processors; the results are in the files' order."""
    _core._Program("//", "<options>", 1, "", options)  # refuses what no file could be read with
    diagnostics: list[Diagnostic] = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found = pool.map(lambda path: lint_file(path, options), paths)
        with Progress("checking", len(paths)) as progress:
            for each in found:
                diagnostics += each
                progress.advance()
    return diagnostics


class _Path:
    """A path for locate(), spelled as the user spelled it."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return self.path


os.PathLike.register(_Path)


def _check(located: Located, options: ProgramOptions) -> list[Diagnostic]:
    return _core._lint(_core._Program(*located, options))


def _check_literal(literal: Literal, path: str, options: ProgramOptions) -> list[Diagnostic]:
    def at(severity: str, message: str) -> Diagnostic:
        return _message(severity, message, path, literal.line, literal.column)

    if literal.skipped:
        return [at("note", f"{literal.name} is {literal.skipped}: not checked")]
    try:
        own = ProgramOptions(**{**options._as_dict(), **_merged(literal.options, options)})
        found = _check(Located(literal.text, path, 1, ""), own)
    except (InvalidArgument, TypeError) as error:
        return [at("error", f"{literal.name}: {error}")]
    result = []
    for diagnostic in found:
        if diagnostic.file == path:
            line, column = literal.place(diagnostic.line, diagnostic.column)
            diagnostic = diagnostic._replace(line=line, column=column)
        result.append(diagnostic)
    return result


def _merged(own: dict[str, Any], options: ProgramOptions) -> dict[str, Any]:
    """A literal's own options; tables are added to those of all files."""
    merged = dict(own)
    common = options._as_dict()
    for name in ("defines", "headers"):
        if isinstance(own.get(name), dict):
            merged[name] = {**common[name], **own[name]}
    if isinstance(own.get("include_dirs"), (list, tuple)):
        merged["include_dirs"] = [*own["include_dirs"], *common["include_dirs"]]
    return merged


def _message(
    severity: str, message: str, path: str, line: int | None, column: int | None
) -> Diagnostic:
    return Diagnostic(severity, message, path, line or 0, column or 0, "", "")
