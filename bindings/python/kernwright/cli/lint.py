"""kernwright lint: compiler messages for .cu files and for the string kernels of .py files."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter

from kernwright._words import counted
from kernwright.cli._files import complete_files, existing
from kernwright.cli._options import add_compiler_options, compiler_options
from kernwright.errors import Diagnostic


def add_arguments(parser: argparse.ArgumentParser) -> None:
    files = parser.add_argument("files", nargs="+", metavar="FILE", help="a .cu or a .py file")
    complete_files(files)
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
    from kernwright._lint import lint_files

    for path in arguments.files:
        existing(path)
    found = lint_files(arguments.files, compiler_options(arguments, arguments.arch))
    counts = Counter(diagnostic.severity for diagnostic in found)
    if arguments.json:
        print(json.dumps([diagnostic._asdict() for diagnostic in found], indent=1))
    else:
        for diagnostic in found:
            print(line_of(diagnostic))
        summary = (
            counted(len(arguments.files), "file"),
            counted(counts["error"], "error"),
            counted(counts["warning"], "warning"),
        )
        print(", ".join(summary), file=sys.stderr)
    return 1 if counts["error"] else 0
