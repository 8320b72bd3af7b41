"""kernwright lint: compiler messages for .cu files, and for string kernels in Python."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter

from kernwright._support.words import counted
from kernwright.cli import UsageError
from kernwright.cli._files import complete_files, existing
from kernwright.cli._options import add_compiler_options, compiler_options
from kernwright.errors import Diagnostic, InvalidArgument


def add_arguments(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="a .cu, .py or .ipynb file, a folder of them, or - for stdin",
    )
    complete_files(files)
    parser.add_argument(
        "--stdin-filename", metavar="NAME", default="<stdin>", help="what to call stdin"
    )
    parser.add_argument("--arch", help='read the text for "sm_90a", "compute_80"')
    parser.add_argument("--json", action="store_true", help="print one JSON document only")
    add_compiler_options(parser)


def line_of(diagnostic: Diagnostic) -> str:
    """file:line:column: severity: message, as compilers write it; further lines are indented."""
    place = ":".join([diagnostic.file, *(str(n) for n in diagnostic[3:5] if n)])
    message = diagnostic.message.replace("\n", "\n    ")
    text = f"{place}: {diagnostic.severity}: {message}"
    if diagnostic.hint:
        text += f"\n{place}: note: {diagnostic.hint}"
    return text


def run(arguments: argparse.Namespace) -> int:
    from kernwright._jit.lint import files_below, lint_files, lint_text

    files: list[str] = []
    for path in arguments.files:
        if os.path.isdir(path):
            below = files_below(path)
            if not below:
                raise UsageError(f"there is no .cu, .py or .ipynb file in {path!r}")
            files += below
        elif path != "-":
            files.append(existing(path))
    count = len(files)
    try:
        options = compiler_options(arguments, arguments.arch)
        found = []
        if "-" in arguments.files:
            count += 1
            text = sys.stdin.buffer.read().decode(errors="replace")
            found += lint_text(text, arguments.stdin_filename, options)
        found += lint_files(files, options)
    except InvalidArgument as error:
        raise UsageError(str(error)) from error
    counts = Counter(diagnostic.severity for diagnostic in found)
    if arguments.json:
        print(json.dumps([diagnostic._asdict() for diagnostic in found], indent=1))
    else:
        for diagnostic in found:
            print(line_of(diagnostic))
        summary = (
            counted(count, "file"),
            counted(counts["error"], "error"),
            counted(counts["warning"], "warning"),
        )
        print(", ".join(summary), file=sys.stderr)
    return 1 if counts["error"] else 0
