"""kernwright compile: a source file to a cubin or PTX, with the names that a kernel has in it."""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import sys
from pathlib import Path
from typing import Any

from kernwright._support.progress import steps
from kernwright._support.words import counted
from kernwright.cli import UsageError
from kernwright.cli._files import (
    architectures,
    complete_files,
    existing,
    writable,
)
from kernwright.cli._options import add_compiler_options, compiler_options

ENTRY = re.compile(r"Compiling entry function '(\w+)'")
USED = {
    "registers": re.compile(r"Used (\d+) registers"),
    "shared_bytes": re.compile(r"(\d+) bytes smem"),
    "stack_bytes": re.compile(r"(\d+) bytes stack frame"),
    "spill_bytes": re.compile(r"(\d+) bytes spill stores"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    complete_files(parser.add_argument("file", metavar="FILE", help="CUDA C++ source"))
    parser.add_argument(
        "--arch",
        action="append",
        default=[],
        help="sm_90a, compute_80; repeatable; the device's when left out",
    )
    parser.add_argument("--emit", choices=("cubin", "ptx"), default="cubin", help="default: cubin")
    parser.add_argument(
        "--name", action="append", default=[], metavar="EXPR", help='"scale<float, 4>"; repeatable'
    )
    complete_files(
        parser.add_argument("-o", "--output", metavar="OUT", help="the file to write; - for stdout")
    )
    parser.add_argument(
        "--report", action="store_true", help="phases, registers, spills as a table"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document only")
    add_compiler_options(parser)


def resources(log: str) -> dict[str, dict[str, int]]:
    """What ptxas says of each kernel, by its lowered name."""
    used: dict[str, dict[str, int]] = {}
    entry = ""
    for line in log.splitlines():
        if match := ENTRY.search(line):
            entry = match[1]
            used[entry] = dict.fromkeys(USED, 0)
        elif entry:
            for name, pattern in USED.items():
                if match := pattern.search(line):
                    used[entry][name] = int(match[1])
    return used


def require_kernels(file: str, declared: list[str], code: Any) -> None:
    """Says which templates were left out. Throws UsageError where nothing else is there."""
    made = {name.partition("<")[0].rpartition("::")[2] for name in code.lowered_names}
    left = [name for name in declared if name.rpartition("::")[2] not in made]
    # Explicit instances are in the code, under names that nobody asked for.
    if (b".entry" if code.kind == "ptx" else b".nv.info.") not in code.code:
        if left:
            raise UsageError(
                f"{file!r} has only templates, which are compiled when they are named: "
                f"give --name '{left[0]}<...>' with the template's arguments"
            )
        print(f"{file}: warning: there is no kernel in it", file=sys.stderr)
    elif left:
        print(
            f"{file}: note: a template is compiled when --name names it: {', '.join(left)}",
            file=sys.stderr,
        )


def compile_one(arguments: argparse.Namespace, arch: str | None) -> tuple[Any, dict[str, Any]]:
    """The object code, and a row for the report."""
    import kernwright as kw

    options = compiler_options(arguments, arch)
    if arguments.report and arguments.emit == "cubin":
        options = options.replace(extra=[*arguments.option, "--ptxas-options=-v"])
    program = kw.Program(Path(arguments.file), options)
    code = program.compile(arguments.emit, arguments.name or None)
    if not arguments.name:
        require_kernels(arguments.file, program.names, code)
    for diagnostic in code.diagnostics:
        if diagnostic.severity == "warning":
            place = f"{diagnostic.file}:{diagnostic.line}:{diagnostic.column}"
            print(f"{place}: warning: {diagnostic.message}", file=sys.stderr)
    used = resources(code.log)
    row = {
        "arch": code.arch,
        "kind": code.kind,
        "bytes": len(code.code),
        "nvrtc_version": code.nvrtc_version,
        "compile_ms": round(code.compile_ms, 2),
        "kernels": [
            {"name": name, "lowered": lowered, **used.get(lowered, {})}
            for name, lowered in code.lowered_names.items()
        ],
    }
    if arguments.report and arch is None:
        plain = kw.Program(Path(arguments.file), compiler_options(arguments))
        reports = [plain.kernel(name).report() for name in code.lowered_names]
        row["reports"] = [dataclasses.asdict(report) for report in reports]
        row["tables"] = [str(report) for report in reports]
    return code, row


def output_path(arguments: argparse.Namespace, arch: str, several: bool) -> str:
    if arguments.output:
        return str(arguments.output)
    stem = Path(arguments.file).stem
    return f"{stem}.{arch}.{arguments.emit}" if several else f"{stem}.{arguments.emit}"


def show(row: dict[str, Any]) -> None:
    """What is known of the code; on the device at hand, all of Kernel.report()."""
    print(
        f"{row['arch']}: {row['kind']} of {counted(row['bytes'], 'byte')} "
        f"by NVRTC {row['nvrtc_version']} in {row['compile_ms']} ms"
    )
    titles = ("registers", "shared_bytes", "stack_bytes", "spill_bytes")
    print("  " + "".join(f"{title.replace('_', ' '):>14}" for title in titles) + "  kernel")
    for kernel in row["kernels"]:
        print("  " + "".join(f"{kernel.get(t, '-'):>14}" for t in titles) + f"  {kernel['name']}")
    for table in row.get("tables", ()):
        print(f"\n{table}")


def run(arguments: argparse.Namespace) -> int:
    import kernwright as kw

    existing(arguments.file)
    archs: list[str | None] = [*architectures(arguments.arch)] or [None]
    if len(archs) > 1 and arguments.output:
        raise UsageError("-o names one file: give one --arch with it")
    if arguments.output == "-" and (arguments.report or arguments.json):
        raise UsageError("-o - fills stdout with the code: leave out --report and --json")
    if arguments.output != "-":
        writable(output_path(arguments, archs[0] or "", len(archs) > 1))
    for arch in archs:  # a wrong one is found before anything is compiled
        kw.Program("//", compiler_options(arguments, arch))
    made = [compile_one(arguments, arch) for arch in steps("compiling", archs)]
    if arguments.output == "-":
        sys.stdout.buffer.write(made[0][0].code)
        return 0
    rows = []
    for code, row in made:
        path = writable(output_path(arguments, code.arch, len(archs) > 1))
        Path(path).write_bytes(code.code)
        if not arguments.json:
            print(f"wrote {path}")
            if arguments.report:
                show(row)
        row.pop("tables", None)
        rows.append({"file": path, **row})
    if arguments.json:
        print(json.dumps(rows, indent=1))
    return 0
