"""kernwright tune-kernels: renews the library's table of launch numbers for the device at hand."""

from __future__ import annotations

import argparse
import json
from typing import Any

from kernwright._support.words import counted
from kernwright.cli import UsageError
from kernwright.cli._files import complete_files, writable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "families",
        nargs="*",
        metavar="FAMILY",
        help="softmax, norm, reduce ...; all without one",
    )
    parser.add_argument("--dtype", action="append", help="element type to measure with; repeatable")
    parser.add_argument(
        "--tiny", action="store_true", help="small arrays, as on the simulated device"
    )
    parser.add_argument(
        "--seconds", type=float, default=0.2, help="for each candidate (default: 0.2)"
    )
    table = parser.add_argument(
        "--table",
        metavar="FILE",
        help="the file to write instead of kernel_choices.json in the folder of the cache",
    )
    complete_files(table)
    parser.add_argument("--dry-run", action="store_true", help="measure and write nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON document only")


def describe(row: dict[str, Any]) -> str:
    times = "  ".join(f"{value}: {ms:.4g} ms" for value, ms in row["ms"].items())
    change = f"-> {row['value']}" if row["value"] is not None else "stays"
    name = f"{row['number']} {row['class']}"
    return f"{name:34} now {row['now_ms']:.4g} ms  {times}  {change}"


def run(arguments: argparse.Namespace) -> int:
    import kernwright as kw

    if not arguments.seconds > 0:
        raise UsageError(f"--seconds {arguments.seconds} is not above 0")
    if arguments.table is not None:
        writable(arguments.table)
    rows = kw.tune.library(
        arguments.families or None,
        dtypes=arguments.dtype or ("float16", "float32"),
        tiny=True if arguments.tiny else None,
        path=arguments.table,
        save=not arguments.dry_run,
        seconds=arguments.seconds,
    )
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return 0
    for row in rows:
        print(describe(row))
    changed = sum(row["value"] is not None for row in rows)
    verb = "would change" if arguments.dry_run else "changed"
    print(f"{counted(changed, 'number')} of {len(rows)} {verb} for {kw.current_device().name}")
    return 0
