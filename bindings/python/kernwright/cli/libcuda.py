"""kernwright libcuda: where the simulated device's libcuda.so.1 is, or a program run on it."""

from __future__ import annotations

import argparse
import json
import os

from kernwright.cli import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document only")
    parser.add_argument(
        "program",
        nargs=argparse.REMAINDER,
        metavar="PROGRAM",
        help="a program and its arguments, run with the folder in front of LD_LIBRARY_PATH; "
        "without one the folder is printed",
    )


def run(arguments: argparse.Namespace) -> int:
    from kernwright._support import libcuda as _libcuda

    folder = _libcuda.libcuda_path()
    program = arguments.program[arguments.program[:1] == ["--"] :]
    if not program:
        print(json.dumps({"folder": folder}) if arguments.json else folder)
        return 0
    if arguments.json:
        raise UsageError("--json is for the folder: leave out the program")
    before = os.environ.get("LD_LIBRARY_PATH")
    path = os.pathsep.join([folder, before] if before else [folder])
    try:
        os.execvpe(program[0], program, {**os.environ, "LD_LIBRARY_PATH": path})
    except (FileNotFoundError, PermissionError, NotADirectoryError) as error:
        raise UsageError(f"{program[0]!r} cannot be run: {error.strerror}") from error
