"""kernwright tune-kernels: renews the library's tables of kernels for the device at hand."""

from __future__ import annotations

import argparse
import json
import re
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
    parser.add_argument(
        "--dtype",
        action="append",
        help="element type to measure with; repeatable. "
        "Of products also float8_e4m3fn[.fast, .blocks], int8 and tf32",
    )
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
    parser.add_argument(
        "--products",
        action="store_true",
        help="measure matrix products over public lists of shapes; the file is written after each",
    )
    parser.add_argument(
        "--shape", action="append", metavar="MxNxK", help="of a product, instead; repeatable"
    )
    parser.add_argument("--part", metavar="I/N", help="only part I of N of the shapes of products")
    parser.add_argument(
        "--renew", action="store_true", help="measure products that the table has, too"
    )
    parser.add_argument("--dry-run", action="store_true", help="measure and write nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON document only")


def describe(row: dict[str, Any]) -> str:
    times = "  ".join(f"{value}: {ms:.4g} ms" for value, ms in row["ms"].items())
    change = f"-> {row['value']}" if row["value"] is not None else "stays"
    name = f"{row['number']} {row['class']}"
    return f"{name:34} now {row['now_ms']:.4g} ms  {times}  {change}"


def describe_product(row: dict[str, Any]) -> str:
    best = " ".join(str(part) for part in row["plan"]) or "stays"
    name = f"{row['types']} {row['shape']}"
    return f"{name:52} rule {row['rule_ms']:.4g} ms  best {row['best_ms']:.4g} ms  {best}"


def numbers(text: str, pattern: str, what: str) -> tuple[int, ...]:
    found = re.fullmatch(pattern, text)
    if found is None:
        raise UsageError(f"{what} {text!r} is not of the form {what.split()[-1]}")
    return tuple(int(part) for part in found.groups())


def run_products(arguments: argparse.Namespace) -> int:
    import kernwright as kw
    from kernwright.tune._product_operands import KINDS
    from kernwright.tune._products import ratios

    if arguments.families:
        raise UsageError("--products takes no families")
    shapes = [
        numbers(text, r"(\d+)x(\d+)x(\d+)", "--shape MxNxK") for text in arguments.shape or ()
    ]
    part = numbers(arguments.part, r"(\d+)/(\d+)", "--part I/N") if arguments.part else None
    rows = kw.tune.products(
        shapes or None,
        dtypes=arguments.dtype or KINDS,
        part=None if part is None else (part[0], part[1]),
        renew=arguments.renew,
        path=arguments.table,
        save=not arguments.dry_run,
        seconds=arguments.seconds,
        on_row=None if arguments.json else lambda row: print(describe_product(row), flush=True),
    )
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return 0
    mean, worst = ratios(rows)
    changed = sum(bool(row["plan"]) for row in rows)
    print(
        f"{counted(changed, 'shape')} of {len(rows)} have a plan of their own on "
        f"{kw.current_device().name}; the rule takes {mean:.3f} times as long as the table on "
        f"average, {worst:.3f} times at worst"
    )
    return 0


def run(arguments: argparse.Namespace) -> int:
    import kernwright as kw

    if not arguments.seconds > 0:
        raise UsageError(f"--seconds {arguments.seconds} is not above 0")
    if arguments.table is not None:
        writable(arguments.table)
    if arguments.products:
        return run_products(arguments)
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
