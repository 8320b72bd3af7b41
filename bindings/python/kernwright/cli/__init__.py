"""The command line: one module a command, each with add_arguments(parser) and run(arguments)."""

from __future__ import annotations

import argparse
import importlib
import sys

COMMANDS = {
    "demo": "string kernels over a photograph, compiled, launched and checked",
    "doctor": "what this machine has (driver, devices, NVRTC, headers), and a kernel run on it",
    "compile": "a source file to a cubin or PTX",
    "lint": "compiler messages for .cu files and the string kernels of .py files, with no GPU",
    "cache": "shows, checks and empties the disk cache of compiled kernels",
    "pack": "compiles many kernels for many architectures into one file",
}


class UsageError(Exception):
    """The command was given something it cannot use; exit code 2."""


def main(argv: list[str] | None = None) -> int:
    """Runs one command. Returns 0 on success, 1 on failure, 2 on wrong use."""
    parser = argparse.ArgumentParser(
        prog="kernwright", description="Runs CUDA kernels that are written as strings."
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, description in COMMANDS.items():
        module = importlib.import_module(f"kernwright.cli.{name}")
        command = commands.add_parser(name, help=description, description=description)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    arguments = parser.parse_args(argv)

    import kernwright as kw

    try:
        return int(arguments.run(arguments))
    except UsageError as error:
        print(f"kernwright {arguments.command}: {error}", file=sys.stderr)
        return 2
    except kw.Error as error:
        print(f"kernwright {arguments.command}: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
