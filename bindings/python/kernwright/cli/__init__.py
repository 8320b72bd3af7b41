"""The command line: one module a command, each with add_arguments(parser) and run(arguments)."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from typing import Any

COMMANDS = {
    "demo": "string kernels over a picture, compiled, launched and compared with NumPy",
    "doctor": "what this machine has (driver, devices, NVRTC, headers), and a kernel run on it",
    "compile": "a source file to a cubin or PTX",
    "lint": "compiler messages for .cu files and the string kernels of .py files, with no GPU",
    "cache": "shows, checks and empties the disk cache of compiled kernels",
    "pack": "compiles many kernels for many architectures into one file",
    "tune": "runs the tuning session that a file describes",
    "bench": "times our operations beside peers, or your kernels, and compares with earlier runs",
    "bench-llm": "how fast a language model reads prompts and writes; also: bench llm MODEL",
    "tune-kernels": "measures launch numbers of the library on this device and keeps the best",
    "judge": "a verdict about kernels that nobody has read: compiled, checked, compared, timed",
    "mcp": "a tool server for agents: compile, check, judge, profile and tune kernels",
    "generate": "what a language model writes behind a prompt",
    "chat": "a conversation with a language model",
    "quantize": "the files of a language model, with weights of few bits",
    "serve": "a language model for many users: OpenAI's HTTP interface",
    "libcuda": "the folder of a libcuda.so.1 that is the simulated device, or a program run on it",
}


class UsageError(Exception):
    """The command was given something it cannot use; exit code 2."""


class PrintCompletion(argparse.Action):
    """Prints a shell's completion script, which shtab writes."""

    def __call__(self, parser: argparse.ArgumentParser, *rest: Any) -> None:
        shell = rest[1]
        try:
            import shtab
        except ImportError:
            parser.error("completion is written by shtab: pip install 'kernwright[completion]'")
        print(shtab.complete(parser, shell))
        parser.exit()


def make_parser() -> argparse.ArgumentParser:
    from kernwright import __version__

    parser = argparse.ArgumentParser(
        prog="kernwright", description="Runs CUDA kernels that are written as strings."
    )
    parser.add_argument("--version", action="version", version=f"kernwright {__version__}")
    parser.add_argument(
        "--print-completion",
        action=PrintCompletion,
        choices=("bash", "zsh", "tcsh"),
        help="print the shell's completion script (needs shtab)",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, description in COMMANDS.items():
        module = importlib.import_module(f"kernwright.cli.{name.replace('-', '_')}")
        command = commands.add_parser(name, help=description, description=description)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Runs one command. Returns 0 on success, 1 on failure, 2 on wrong use."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # names that the terminal cannot show are no failure
            stream.reconfigure(errors="backslashreplace")
    words = sys.argv[1:] if argv is None else argv
    if words[:2] == ["bench", "llm"]:  # a file of that name is ./llm
        words = ["bench-llm", *words[2:]]
    arguments = make_parser().parse_args(words)

    import kernwright as kw

    def say(error: object) -> None:
        print(f"kernwright {arguments.command}: {error}", file=sys.stderr)

    try:
        code = int(arguments.run(arguments))
        sys.stdout.flush()
        return code
    except (UsageError, kw.InvalidArgument, kw.ArgumentError, kw.NameNotFound) as error:
        say(error)
        return 2
    except kw.Error as error:
        say(f"{type(error).__name__}: {error}")
        return 1
    except BrokenPipeError:  # who reads has enough; what is left goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        place = f"{os.fsdecode(error.filename)!r}: " if error.filename else ""
        say(f"{place}{error.strerror or error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 1
